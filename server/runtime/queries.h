// Reads of committed data, on threads of their own with read-only connections. They never wait for
// a commit and never hold one up.
//
// There are two lanes. What looks up single rows by their key does not queue behind what reads
// many: lists, logs and the bytes of artifacts. Each of these reads a bounded amount and a stream
// has one under way, so that streams take turns. Questions to the history, of which one may take 2
// s, have two lanes of their own; each goes to the one where fewer wait.

#ifndef SERVER_RUNTIME_QUERIES_H_
#define SERVER_RUNTIME_QUERIES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "server/core/history.h"
#include "server/core/query.h"
#include "server/core/types.h"
#include "server/runtime/task_thread.h"

namespace assay::store {
class ArtifactReader;
class ArtifactStore;
class HistoryReader;
class Reader;
}  // namespace assay::store

namespace assay::runtime {

// Every method returns at once; its callback is called exactly once, on the query thread, or at
// once with RESOURCE_EXHAUSTED if too many queries wait. Callbacks must not block. Thread-safe.
class Queries {
 public:
  template <typename T>
  using Callback = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  // One reader for each lane. `artifacts` must outlive this.
  using HistoryReaders = std::array<std::unique_ptr<store::HistoryReader>, 2>;
  Queries(std::unique_ptr<store::Reader> lookups, std::unique_ptr<store::Reader> bulk,
          HistoryReaders history, const store::ArtifactStore* artifacts);
  ~Queries();

  // Who may see it, as Reader::DisclosureOf. NOT_FOUND.
  void GetDisclosure(core::SubmissionId id, Callback<core::Disclosure> callback);
  void GetDisclosure(core::RunId id, Callback<core::Disclosure> callback);
  // How many submissions `viewer` sees.
  void CountSubmissions(core::VisibleTo viewer, Callback<int64_t> callback);
  // NOT_FOUND.
  void GetSubmission(core::SubmissionId id, Callback<core::Submission> callback);
  // Whom a borrowing is about. NOT_FOUND names the entry that does not exist.
  struct BorrowingParties {
    core::Submission own;
    core::Submission lender;
    core::SubmissionId borrower;  // that borrows in place of `own` already; none if none does
  };
  void GetBorrowingParties(core::Borrowing borrowing, Callback<BorrowingParties> callback);
  // With all of its runs, in order of number. NOT_FOUND.
  struct RunSet {
    core::Submission submission;
    std::vector<core::Run> runs;
  };
  void GetRunSet(core::SubmissionId id, Callback<RunSet> callback);
  // Newest first. INVALID_ARGUMENT for a page token that is not ours.
  void ListSubmissions(core::SubmissionFilter filter, core::PageRequest page,
                       Callback<core::Page<core::Submission>> callback);
  // NOT_FOUND.
  void GetRun(core::RunId id, Callback<core::Run> callback);
  // Of one submission in order of number; of all, newest first.
  void ListRuns(core::RunFilter filter, core::PageRequest page,
                Callback<core::Page<core::SeenRun>> callback);

  // Events of the log after `after_seq`, oldest first, at most `limit`, that `viewer` sees; of one
  // submission, or of all if it is none. `last_seq` of the answer says how far the log was read:
  // with no more events (core::IsEndOfLog) the watcher is up to date with it.
  struct EventsAnswer {
    std::vector<core::EventRow> events;
    int64_t last_seq = 0;
  };
  void EventsAfter(core::VisibleTo viewer, core::SubmissionId submission, int64_t after_seq,
                   int32_t limit, Callback<EventsAnswer> callback);
  // The same for reviewers of changes: without what runs and workers do by themselves.
  void Audit(core::AuditQuestion question, Callback<std::vector<core::AuditRow>> callback);

  // Events of a run, oldest first, at most `limit`.
  //   node_rank >= 0: of that node, with seq > after.
  //   node_rank < 0: of all nodes, with order > after.
  void RunEventsAfter(core::RunId run, int32_t node_rank, int64_t after, int32_t limit,
                      Callback<std::vector<core::RunEvent>> callback);

  void ListViews(core::Standing standing, std::string principal,
                 Callback<std::vector<core::View>> callback);
  void ListDatasets(Callback<std::vector<core::Dataset>> callback);
  // NOT_FOUND.
  void GetDataset(std::string id, Callback<core::Dataset> callback);
  void ListTokens(Callback<std::vector<core::Token>> callback);
  void GetWorker(std::string name, Callback<core::Worker> callback);  // also one out of memory
  // NOT_FOUND also for one that is kept for a submission which `viewer` does not see whole.
  void GetAllocation(core::VisibleTo viewer, core::AllocationId id,
                     Callback<core::Allocation> callback);
  // Newest first, without those; a page may be short of them. INVALID_ARGUMENT for a page token
  // that is not ours.
  void ListAllocations(core::VisibleTo viewer, core::PageRequest page,
                       Callback<core::Page<core::Allocation>> callback);

  // What an artifact belongs to, as Reader::GetArtifact. NOT_FOUND.
  void GetArtifact(core::VisibleTo viewer, std::string sha256,
                   Callback<core::ArtifactInfo> callback);
  // A reading of an artifact, shared by its reader and the question that is under way. NOT_FOUND.
  using ArtifactReading = std::shared_ptr<store::ArtifactReader>;
  void OpenArtifact(std::string sha256, Callback<ArtifactReading> callback);
  // Its next piece; empty at the end. DATA_LOSS instead of the last piece if the bytes on disk have
  // changed. One question at a time.
  void ReadArtifact(ArtifactReading reading, Callback<std::string> callback);

  // As HistoryReader::Ask.
  void AskHistory(core::HistoryQuestion question, Callback<core::HistoryAnswer> callback);

  // Answers what is queued, then refuses.
  void Stop();

 private:
  struct Lane {
    const std::unique_ptr<store::Reader> reader;  // used on the thread only
    TaskThread thread;
  };

  struct HistoryLane {
    explicit HistoryLane(std::unique_ptr<store::HistoryReader> of);
    ~HistoryLane();
    const std::unique_ptr<store::HistoryReader> reader;  // used on the thread only
    std::atomic<int> waiting = 0;                        // asked, and not yet answered
    TaskThread thread;
  };

  const store::ArtifactStore* const artifacts_;
  Lane lookups_;
  Lane bulk_;
  std::array<std::unique_ptr<HistoryLane>, 2> history_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_QUERIES_H_
