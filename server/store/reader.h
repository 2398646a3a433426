// Paged reads of committed data on a read-only connection. Every question has a bound on its answer
// and an index under it.

#ifndef SERVER_STORE_READER_H_
#define SERVER_STORE_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/core/query.h"
#include "server/core/types.h"

namespace assay::store {

// Each call sees all that was committed before it began. Not thread-safe, but may move between
// threads. Any method: DATA_LOSS if a row cannot be read.
class Reader {
 public:
  // The database has to exist: Store::Open makes it.
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const std::string& path);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Who may see it, without its body: as quick for what exists as for what does not. NOT_FOUND.
  absl::StatusOr<core::Disclosure> DisclosureOf(core::SubmissionId id);
  absl::StatusOr<core::Disclosure> DisclosureOf(core::RunId id);
  // How many submissions `viewer` sees.
  absl::StatusOr<int64_t> CountSubmissions(const core::VisibleTo& viewer);

  absl::StatusOr<core::Submission> GetSubmission(core::SubmissionId id);  // NOT_FOUND
  // Newest first. INVALID_ARGUMENT for a page token that is not ours.
  absl::StatusOr<core::Page<core::Submission>> ListSubmissions(const core::SubmissionFilter& filter,
                                                               const core::PageRequest& page);

  // The entry that borrows in place of `own`; none if none does.
  absl::StatusOr<core::SubmissionId> BorrowerOf(core::SubmissionId own);

  absl::StatusOr<core::Run> GetRun(core::RunId id);  // NOT_FOUND
  // Of one submission in order of number; of all, newest first.
  absl::StatusOr<core::Page<core::SeenRun>> ListRuns(const core::RunFilter& filter,
                                                     const core::PageRequest& page);
  // All runs of a submission, in order of number.
  absl::StatusOr<std::vector<core::Run>> RunsOf(core::SubmissionId id);

  // The last seq of the event log; 0 if it is empty.
  absl::StatusOr<int64_t> LastSeq();
  // After `after_seq`, oldest first, at most `limit` and about kLogReadBytesMax; of one
  // submission, or of all if it is none. Without those of submissions that `viewer` does not see;
  // what concerns none is for who sees all.
  absl::StatusOr<std::vector<core::EventRow>> EventsAfter(const core::VisibleTo& viewer,
                                                          core::SubmissionId submission,
                                                          int64_t after_seq, int32_t limit);
  // Of all, without what runs and workers do by themselves.
  absl::StatusOr<std::vector<core::AuditRow>> Audit(const core::AuditQuestion& question);

  // node_rank >= 0: of that node, with seq > after; node_rank < 0: of all, with order > after.
  absl::StatusOr<std::vector<core::RunEvent>> RunEventsAfter(core::RunId run, int32_t node_rank,
                                                             int64_t after, int32_t limit);

  // Findings that agents reported of a run in time (not late), at most `limit`, in order of commit;
  // without those that are longer than any of ours (4 KiB as stored).
  absl::StatusOr<std::vector<core::Finding>> FindingsOf(core::RunId run, int32_t limit);

  // The principal's own, and those shared with it: operators' with everybody, reviewers' with
  // reviewers and operators, submitters' with their organisation. By name.
  absl::StatusOr<std::vector<core::View>> ListViews(const core::Standing& standing,
                                                    const std::string& principal);
  absl::StatusOr<std::vector<core::Dataset>> ListDatasets();
  absl::StatusOr<core::Dataset> GetDataset(const std::string& id);  // NOT_FOUND
  absl::StatusOr<std::vector<core::Token>> ListTokens();
  // As it was when it was last written; also one that has left memory. NOT_FOUND.
  absl::StatusOr<core::Worker> GetWorker(const std::string& name);
  // With the workers that belong to it where these came by themselves. NOT_FOUND, also for one that
  // is kept for a submission which `viewer` does not see whole.
  absl::StatusOr<core::Allocation> GetAllocation(const core::VisibleTo& viewer,
                                                 core::AllocationId id);
  // Newest first, without those; a page may be short of them. INVALID_ARGUMENT for a page token
  // that is not ours.
  absl::StatusOr<core::Page<core::Allocation>> ListAllocations(const core::VisibleTo& viewer,
                                                               const core::PageRequest& page);
  // NOT_FOUND also if `viewer` sees no run that has it under a name that is shown to it.
  absl::StatusOr<core::ArtifactInfo> GetArtifact(const core::VisibleTo& viewer,
                                                 const std::string& sha256);

  // How SQLite would find the answers, one line per step, for tests.
  absl::StatusOr<std::vector<std::string>> ExplainPlans();

 private:
  struct Statements;
  absl::Status FillWorkers(core::Allocation* allocation);
  absl::StatusOr<bool> IsSeen(const core::VisibleTo& viewer, const core::Allocation& allocation);
  explicit Reader(std::unique_ptr<Statements> statements);
  const std::unique_ptr<Statements> statements_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_READER_H_
