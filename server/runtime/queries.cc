#include "server/runtime/queries.h"

#include <utility>

#include "common/status.h"
#include "server/store/artifacts.h"
#include "server/store/history_reader.h"
#include "server/store/reader.h"

namespace assay::runtime {
namespace {

// Questions that may wait; each holds a call of the API open.
constexpr size_t kQueriesMax = 10000;
// Of the history, in each lane: with 2 s each, the last waits for as long as a call may take.
constexpr size_t kHistoryQueriesMax = 100;

// Holds a question's callback; if the question is dropped unasked, says so.
template <typename T>
class Answer {
 public:
  explicit Answer(Queries::Callback<T> callback) : callback_(std::move(callback)) {}
  ~Answer() {
    if (callback_) callback_(absl::ResourceExhaustedError("too many queries wait; retry later"));
  }
  Answer(Answer&& other) noexcept : callback_(std::exchange(other.callback_, nullptr)) {}
  Answer& operator=(Answer&&) = delete;

  void Give(absl::StatusOr<T> result) { std::exchange(callback_, nullptr)(std::move(result)); }

 private:
  Queries::Callback<T> callback_;
};

// Runs `ask` on the thread and gives its result to `callback`. A task that is refused is destroyed,
// and its Answer with it.
template <typename T, typename Ask>
void Post(TaskThread* thread, Queries::Callback<T> callback, Ask ask) {
  [[maybe_unused]] const bool is_taken =
      thread->Post([answer = Answer<T>(std::move(callback)), ask = std::move(ask)]() mutable {
        answer.Give(ask());
      });
}

}  // namespace

Queries::HistoryLane::HistoryLane(std::unique_ptr<store::HistoryReader> of)
    : reader(std::move(of)), thread("history", kHistoryQueriesMax) {}

Queries::HistoryLane::~HistoryLane() = default;

Queries::Queries(std::unique_ptr<store::Reader> lookups, std::unique_ptr<store::Reader> bulk,
                 HistoryReaders history, const store::ArtifactStore* artifacts)
    : artifacts_(artifacts),
      lookups_{std::move(lookups), {"lookups", kQueriesMax}},
      bulk_{std::move(bulk), {"bulk_reads", kQueriesMax}} {
  for (size_t i = 0; i < history.size(); ++i)
    history_[i] = std::make_unique<HistoryLane>(std::move(history[i]));
}

Queries::~Queries() {
  Stop();
}

void Queries::Stop() {
  lookups_.thread.Stop();
  bulk_.thread.Stop();
  for (const std::unique_ptr<HistoryLane>& lane : history_)
    lane->thread.Stop();
}

void Queries::GetDisclosure(core::SubmissionId id, Callback<core::Disclosure> callback) {
  Post(&lookups_.thread, std::move(callback),
       [this, id] { return lookups_.reader->DisclosureOf(id); });
}

void Queries::GetDisclosure(core::RunId id, Callback<core::Disclosure> callback) {
  Post(&lookups_.thread, std::move(callback),
       [this, id] { return lookups_.reader->DisclosureOf(id); });
}

void Queries::CountSubmissions(core::VisibleTo viewer, Callback<int64_t> callback) {
  Post(&bulk_.thread, std::move(callback),
       [this, viewer = std::move(viewer)] { return bulk_.reader->CountSubmissions(viewer); });
}

void Queries::GetSubmission(core::SubmissionId id, Callback<core::Submission> callback) {
  Post(&lookups_.thread, std::move(callback),
       [this, id] { return lookups_.reader->GetSubmission(id); });
}

void Queries::GetBorrowingParties(core::Borrowing borrowing, Callback<BorrowingParties> callback) {
  Post(&lookups_.thread, std::move(callback),
       [this, borrowing]() -> absl::StatusOr<BorrowingParties> {
         BorrowingParties parties;
         ASSIGN_OR_RETURN(parties.own, lookups_.reader->GetSubmission(borrowing.own));
         ASSIGN_OR_RETURN(parties.lender, lookups_.reader->GetSubmission(borrowing.lender));
         ASSIGN_OR_RETURN(parties.borrower, lookups_.reader->BorrowerOf(borrowing.own));
         return parties;
       });
}

void Queries::GetRunSet(core::SubmissionId id, Callback<RunSet> callback) {
  Post(&bulk_.thread, std::move(callback), [this, id]() -> absl::StatusOr<RunSet> {
    RunSet set;
    ASSIGN_OR_RETURN(set.submission, bulk_.reader->GetSubmission(id));
    ASSIGN_OR_RETURN(set.runs, bulk_.reader->RunsOf(id));
    return set;
  });
}

void Queries::ListSubmissions(core::SubmissionFilter filter, core::PageRequest page,
                              Callback<core::Page<core::Submission>> callback) {
  Post(&bulk_.thread, std::move(callback),
       [this, filter, page] { return bulk_.reader->ListSubmissions(filter, page); });
}

void Queries::GetRun(core::RunId id, Callback<core::Run> callback) {
  Post(&lookups_.thread, std::move(callback), [this, id] { return lookups_.reader->GetRun(id); });
}

void Queries::ListRuns(core::RunFilter filter, core::PageRequest page,
                       Callback<core::Page<core::SeenRun>> callback) {
  Post(&bulk_.thread, std::move(callback),
       [this, filter, page] { return bulk_.reader->ListRuns(filter, page); });
}

void Queries::EventsAfter(core::VisibleTo viewer, core::SubmissionId submission, int64_t after_seq,
                          int32_t limit, Callback<EventsAnswer> callback) {
  Post(&bulk_.thread, std::move(callback),
       [this, viewer = std::move(viewer), submission, after_seq,
        limit]() -> absl::StatusOr<EventsAnswer> {
         // The end first: what is committed in between is told by a later call.
         absl::StatusOr<int64_t> last_seq = bulk_.reader->LastSeq();
         if (!last_seq.ok()) return last_seq.status();
         absl::StatusOr<std::vector<core::EventRow>> events =
             bulk_.reader->EventsAfter(viewer, submission, after_seq, limit);
         if (!events.ok()) return events.status();
         return EventsAnswer{*std::move(events), *last_seq};
       });
}

void Queries::Audit(core::AuditQuestion question, Callback<std::vector<core::AuditRow>> callback) {
  Post(&bulk_.thread, std::move(callback),
       [this, question = std::move(question)] { return bulk_.reader->Audit(question); });
}

void Queries::RunEventsAfter(core::RunId run, int32_t node_rank, int64_t after, int32_t limit,
                             Callback<std::vector<core::RunEvent>> callback) {
  Post(&bulk_.thread, std::move(callback), [this, run, node_rank, after, limit] {
    return bulk_.reader->RunEventsAfter(run, node_rank, after, limit);
  });
}

void Queries::ListViews(core::Standing standing, std::string principal,
                        Callback<std::vector<core::View>> callback) {
  Post(&bulk_.thread, std::move(callback),
       [this, standing = std::move(standing), principal = std::move(principal)] {
         return bulk_.reader->ListViews(standing, principal);
       });
}

void Queries::ListDatasets(Callback<std::vector<core::Dataset>> callback) {
  Post(&bulk_.thread, std::move(callback), [this] { return bulk_.reader->ListDatasets(); });
}

void Queries::GetDataset(std::string id, Callback<core::Dataset> callback) {
  Post(&lookups_.thread, std::move(callback),
       [this, id] { return lookups_.reader->GetDataset(id); });
}

void Queries::ListTokens(Callback<std::vector<core::Token>> callback) {
  Post(&bulk_.thread, std::move(callback), [this] { return bulk_.reader->ListTokens(); });
}

void Queries::GetWorker(std::string name, Callback<core::Worker> callback) {
  Post(&lookups_.thread, std::move(callback),
       [this, name] { return lookups_.reader->GetWorker(name); });
}

void Queries::GetAllocation(core::VisibleTo viewer, core::AllocationId id,
                            Callback<core::Allocation> callback) {
  Post(&lookups_.thread, std::move(callback), [this, viewer = std::move(viewer), id] {
    return lookups_.reader->GetAllocation(viewer, id);
  });
}

void Queries::ListAllocations(core::VisibleTo viewer, core::PageRequest page,
                              Callback<core::Page<core::Allocation>> callback) {
  Post(&bulk_.thread, std::move(callback), [this, viewer = std::move(viewer), page] {
    return bulk_.reader->ListAllocations(viewer, page);
  });
}

void Queries::GetArtifact(core::VisibleTo viewer, std::string sha256,
                          Callback<core::ArtifactInfo> callback) {
  Post(&lookups_.thread, std::move(callback),
       [this, viewer = std::move(viewer), sha256 = std::move(sha256)] {
         return lookups_.reader->GetArtifact(viewer, sha256);
       });
}

void Queries::OpenArtifact(std::string sha256, Callback<ArtifactReading> callback) {
  Post(&bulk_.thread, std::move(callback), [this, sha256]() -> absl::StatusOr<ArtifactReading> {
    ASSIGN_OR_RETURN(ArtifactReading reading, artifacts_->OpenReader(sha256));
    return reading;
  });
}

void Queries::ReadArtifact(ArtifactReading reading, Callback<std::string> callback) {
  Post(&bulk_.thread, std::move(callback),
       [reading = std::move(reading)] { return reading->Next(); });
}

void Queries::AskHistory(core::HistoryQuestion question, Callback<core::HistoryAnswer> callback) {
  HistoryLane* const lane =
      history_[0]->waiting <= history_[1]->waiting ? history_[0].get() : history_[1].get();
  ++lane->waiting;
  Post(&lane->thread,
       Callback<core::HistoryAnswer>([lane, callback = std::move(callback)](
                                         absl::StatusOr<core::HistoryAnswer> answer) mutable {
         --lane->waiting;
         callback(std::move(answer));
       }),
       [lane, question = std::move(question)] { return lane->reader->Ask(question); });
}

}  // namespace assay::runtime
