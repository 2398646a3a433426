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

  // Whose it is, by an index alone: as quick for what exists as for what does not. NOT_FOUND.
  absl::StatusOr<std::string> OrganizationOf(core::SubmissionId id);
  absl::StatusOr<std::string> OrganizationOf(core::RunId id);

  absl::StatusOr<core::Submission> GetSubmission(core::SubmissionId id);  // NOT_FOUND
  // Newest first. INVALID_ARGUMENT for a page token that is not ours.
  absl::StatusOr<core::Page<core::Submission>> ListSubmissions(const core::SubmissionFilter& filter,
                                                               const core::PageRequest& page);

  // The entry that borrows in place of `own`; none if none does.
  absl::StatusOr<core::SubmissionId> BorrowerOf(core::SubmissionId own);

  absl::StatusOr<core::Run> GetRun(core::RunId id);  // NOT_FOUND
  // Of one submission in order of number; of all, newest first.
  absl::StatusOr<core::Page<core::Run>> ListRuns(const core::RunFilter& filter,
                                                 const core::PageRequest& page);
  // All runs of a submission, in order of number.
  absl::StatusOr<std::vector<core::Run>> RunsOf(core::SubmissionId id);

  // The last seq of the event log; 0 if it is empty.
  absl::StatusOr<int64_t> LastSeq();
  // After `after_seq`, oldest first, at most `limit` and about kLogReadBytesMax; of one
  // submission, or of all if it is none.
  absl::StatusOr<std::vector<core::EventRow>> EventsAfter(core::SubmissionId submission,
                                                          int64_t after_seq, int32_t limit);
  // The same, of all submissions of one organisation.
  absl::StatusOr<std::vector<core::EventRow>> EventsOfOrganization(const std::string& organization,
                                                                   int64_t after_seq,
                                                                   int32_t limit);
  // The same, without what runs and workers do by themselves.
  absl::StatusOr<std::vector<core::EventRow>> AuditAfter(int64_t after_seq, int32_t limit);

  // node_rank >= 0: of that node, with seq > after; node_rank < 0: of all, with order > after.
  absl::StatusOr<std::vector<core::RunEvent>> RunEventsAfter(core::RunId run, int32_t node_rank,
                                                             int64_t after, int32_t limit);

  // Findings that agents reported of a run in time (not late), at most `limit`, in order of commit;
  // without those that are longer than any of ours (4 KiB as stored).
  absl::StatusOr<std::vector<core::Finding>> FindingsOf(core::RunId run, int32_t limit);

  absl::StatusOr<std::vector<core::Dataset>> ListDatasets();
  absl::StatusOr<core::Dataset> GetDataset(const std::string& id);  // NOT_FOUND
  absl::StatusOr<std::vector<core::Token>> ListTokens();
  // As it was when it was last written; also one that has left memory. NOT_FOUND.
  absl::StatusOr<core::Worker> GetWorker(const std::string& name);
  // With the workers that belong to it where these came by themselves. NOT_FOUND.
  absl::StatusOr<core::Allocation> GetAllocation(core::AllocationId id);
  // Newest first. INVALID_ARGUMENT for a page token that is not ours.
  absl::StatusOr<core::Page<core::Allocation>> ListAllocations(const core::PageRequest& page);
  absl::StatusOr<core::ArtifactInfo> GetArtifact(const std::string& sha256);  // NOT_FOUND

  // How SQLite would find the answers, one line per step, for tests.
  absl::StatusOr<std::vector<std::string>> ExplainPlans();

 private:
  struct Statements;
  absl::Status FillWorkers(core::Allocation* allocation);
  explicit Reader(std::unique_ptr<Statements> statements);
  const std::unique_ptr<Statements> statements_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_READER_H_
