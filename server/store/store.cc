#include "server/store/store.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/store/audit.h"
#include "server/store/chain.h"
#include "server/store/chain_rows.h"
#include "server/store/codec.h"
#include "server/store/rows.h"
#include "server/store/sqlite.h"
#include "server/store/store_statements.h"

namespace assay::store {
// Writes one outcome inside a transaction: events as they come, rows once at the end, since a row
// may be touched many times.
class Store::Writer {
 public:
  // `chain` is that of the last event, and becomes that of the last one written.
  Writer(Statements* statements, const core::State& state, std::string* chain)
      : sql_(*statements), state_(state), chain_(*chain) {}

  absl::Status Write(const core::Outcome& outcome) {
    auto lines = outcome.run_events.begin();
    for (const core::RecordedEvent& event : outcome.events) {
      // The core gives them in pairs, in the same order.
      const bool has_lines = std::holds_alternative<core::RunEventsAppended>(event.event);
      if (has_lines && lines == outcome.run_events.end())
        return absl::InternalError(absl::StrCat("event ", event.seq, " has no lines"));
      RETURN_IF_ERROR(WriteEvent(event, has_lines ? Encode(SealOf((lines++)->events)) : ""));
      RETURN_IF_ERROR(std::visit([&](const auto& e) { return Touch(event, e); }, event.event));
    }
    RETURN_IF_ERROR(WriteTouched());
    for (const core::RunEventBatch& batch : outcome.run_events)
      RETURN_IF_ERROR(WriteRunEvents(batch));
    return absl::OkStatus();
  }

 private:
  absl::Status WriteEvent(const core::RecordedEvent& event, const std::string& lines) {
    const int version = std::visit([](const auto& e) { return e.kVersion; }, event.event);
    const std::string body = EncodeEvent(event.event);
    const ChainedEvent row = {.seq = event.seq,
                              .at_us = event.at_us,
                              .type = core::TypeOf(event.event),
                              .version = version,
                              .principal = event.principal,
                              .submission = event.submission.number,
                              .run = event.run.number,
                              .is_change = std::visit(IsChange{}, event.event),
                              .body = body,
                              .lines = lines};
    chain_ = ChainHash(chain_, row);
    return sql_.insert_event.Run(row.seq, row.at_us, row.type, row.version, row.principal,
                                 row.submission, row.run, row.is_change, row.body, Blob{row.lines},
                                 Blob{chain_});
  }

  absl::Status WriteRunEvents(const core::RunEventBatch& batch) {
    for (const core::RunEvent& event : batch.events) {
      std::string finding;
      if (event.finding.has_value()) finding = Encode(*event.finding);
      RETURN_IF_ERROR(sql_.insert_run_event.Run(
          batch.run.number, event.order, event.node_rank, event.seq, static_cast<int>(event.kind),
          event.line, Blob{event.text}, event.wall_us, event.mono_ns, event.receive_us, finding,
          event.is_late, event.is_attributed));
    }
    return absl::OkStatus();
  }

  // What an event has changed, besides the log. One overload per kind of event.
  using Record = core::RecordedEvent;
  absl::Status Touch(const Record& record, const core::SubmissionCreated& e) {
    submissions_.insert(e.submission);
    new_.insert(e.submission);
    for (int32_t k = 0; k < e.spec.run_count; ++k)
      TouchNewRun(e.spec, core::RunId{e.first_run.number + k});
    if (e.spec.borrowing)
      RETURN_IF_ERROR(sql_.insert_borrowing.Run(e.spec.borrowing->own.number, e.submission.number));
    return WriteRequest(record, {e.standing, record.principal, e.request_id},
                        e.submission.ToString());
  }
  absl::Status Touch(const Record&, const core::SubmissionImported& e) {
    submissions_.insert(e.submission.id);
    new_.insert(e.submission.id);
    for (const core::Run& run : e.runs) {
      runs_.insert(run.id);
      for (const core::ArtifactRef& artifact : run.artifacts)
        artifacts_.push_back({run.id, artifact, /*is_late=*/false});
    }
    return sql_.insert_import.Run(e.submission.spec.round, e.submission.source_path,
                                  e.submission.id.number);
  }
  absl::Status Touch(const Record&, const core::SubmissionCheckStarted& e) {
    return TouchSubmission(e.submission);
  }
  absl::Status Touch(const Record&, const core::SubmissionClosed& e) {
    submissions_.insert(e.submission);
    RETURN_IF_ERROR(sql_.delete_passed.Run(e.submission.number));
    const auto& borrowing = state_.submissions.at(e.submission).spec.borrowing;
    if (!borrowing || e.state != core::SubmissionState::kCancelled) return absl::OkStatus();
    return sql_.delete_borrowing.Run(borrowing->own.number);
  }
  absl::Status Touch(const Record& record, const core::SubmissionNoted& e) {
    submissions_.insert(e.submission);
    return WriteRequest(record, {e.standing, record.principal, e.request_id},
                        e.submission.ToString());
  }
  absl::Status Touch(const Record&, const core::SubmissionPublished& e) {
    return TouchSubmission(e.submission);
  }
  absl::Status Touch(const Record&, const core::SubmissionWithdrawn& e) {
    return TouchSubmission(e.submission);
  }
  absl::Status Touch(const Record&, const core::InstancesPruned& e) {
    return TouchSubmission(e.submission);
  }
  absl::Status Touch(const Record&, const core::RunQueued& e) {
    submissions_.insert(e.submission);
    TouchNewRun(state_.submissions.at(e.submission).spec, e.run);
    return absl::OkStatus();
  }
  absl::Status Touch(const Record&, const core::RunAssigned& e) {
    for (size_t rank = 0; rank < e.workers.size(); ++rank)
      nodes_.emplace(e.run, static_cast<int32_t>(rank));
    workers_.insert(e.workers.begin(), e.workers.end());
    return TouchRun(e.run);
  }
  absl::Status Touch(const Record&, const core::NodeStarted& e) {
    runs_.insert(e.run);
    return TouchNode(e.run, e.node_rank);
  }
  absl::Status Touch(const Record& record, const core::RunStarted& e) {
    submissions_.insert(record.submission);
    return TouchRun(e.run);
  }
  absl::Status Touch(const Record&, const core::NodeFinished& e) {
    return TouchNode(e.run, e.node_rank);
  }
  absl::Status Touch(const Record&, const core::NodeGivenUp& e) {
    return TouchNode(e.run, e.node_rank);
  }
  absl::Status Touch(const Record&, const core::RunUploaded& e) { return TouchRun(e.run); }
  absl::Status Touch(const Record&, const core::RunJudged& e) { return TouchRun(e.run); }
  absl::Status Touch(const Record&, const core::RunFailed& e) { return TouchRun(e.run); }
  absl::Status Touch(const Record&, const core::RunFailureExplained& e) { return TouchRun(e.run); }
  absl::Status Touch(const Record&, const core::RunCancelled& e) { return TouchRun(e.run); }
  absl::Status Touch(const Record&, const core::RunEventsAppended& e) {
    if (e.first_touch_us.has_value() || e.observed_touch_us.has_value()) runs_.insert(e.run);
    return TouchNode(e.run, e.node_rank);
  }
  absl::Status Touch(const Record&, const core::ArtifactRecorded& e) {
    artifacts_.push_back({e.run, e.artifact, e.is_late});
    return TouchRun(e.run);
  }
  absl::Status Touch(const Record&, const core::PreflightFinished& e) {
    workers_.insert(e.worker);
    if (state_.submissions.contains(e.submission)) submissions_.insert(e.submission);
    const std::string& node = core::NodeName(state_.workers.at(e.worker));
    if (const auto passed = state_.passed.find({e.submission, node}); passed != state_.passed.end())
      RETURN_IF_ERROR(sql_.upsert_passed.Run(e.submission.number, node, Encode(passed->second)));
    for (const core::NodeCheck& check : e.checks) {
      const auto it = state_.rates.find({e.node_type, check.check});
      if (it != state_.rates.end())
        RETURN_IF_ERROR(sql_.upsert_rates.Run(e.node_type, check.check, Encode(it->second)));
    }
    return absl::OkStatus();
  }
  template <typename E>
  requires(std::is_same_v<decltype(E::worker), std::string> &&
           !requires(E e) { e.allocation; }) absl::Status Touch(const Record&, const E& e) {
    return TouchWorker(e.worker);
  }
  absl::Status Touch(const Record&, const core::WorkerLabelled& e) { return TouchWorker(e.worker); }
  absl::Status Touch(const Record&, const core::WorkerReleased& e) {
    const std::vector<core::RunNode>& nodes = state_.runs.at(e.run).nodes;
    for (size_t rank = 0; rank < nodes.size(); ++rank)
      if (nodes[rank].worker == e.worker) nodes_.emplace(e.run, static_cast<int32_t>(rank));
    return TouchWorker(e.worker);
  }
  absl::Status Touch(const Record& record, const core::TokenCreated& e) {
    tokens_.insert(e.token.id);
    return WriteRequest(record, {e.standing, record.principal, e.request_id},
                        e.token.id.ToString());
  }
  absl::Status Touch(const Record&, const core::TokenRevoked& e) {
    tokens_.insert(e.token);
    return absl::OkStatus();
  }
  absl::Status Touch(const Record&, const core::DatasetAdded& e) {
    return sql_.upsert_dataset.Run(e.dataset.id, Encode(e.dataset));
  }
  absl::Status Touch(const Record&, const core::DatasetRemoved& e) {
    return sql_.delete_dataset.Run(e.dataset);
  }
  absl::Status Touch(const Record&, const core::ViewSaved& e) {
    const core::View& view = e.view;
    return sql_.upsert_view.Run(view.standing.role, view.standing.organization, view.author,
                                view.name, view.is_shared, Encode(view));
  }
  absl::Status Touch(const Record& record, const core::ViewRemoved& e) {
    return sql_.delete_view.Run(e.standing.role, e.standing.organization, record.principal, e.view);
  }
  absl::Status Touch(const Record& record, const core::AllocationRequested& e) {
    allocations_.insert(e.allocation);
    return WriteRequest(record, {e.standing, record.principal, e.request_id},
                        e.allocation.ToString());
  }
  absl::Status Touch(const Record&, const core::AllocationReleasing& e) {
    allocations_.insert(e.allocation);
    if (e.absent_hosts.empty()) return absl::OkStatus();
    const core::SubmissionId id = state_.allocations.at(e.allocation).spec.submission;
    if (state_.submissions.contains(id)) submissions_.insert(id);  // remembers them
    return absl::OkStatus();
  }
  absl::Status Touch(const Record&, const core::NodeEnrolled& e) {
    allocations_.insert(e.allocation);  // its worker has not called yet
    return absl::OkStatus();
  }
  template <typename E>
  requires requires(const E& e) { e.allocation; }
  absl::Status Touch(const Record&, const E& e) {
    allocations_.insert(e.allocation);
    if constexpr (requires { e.worker; }) workers_.insert(e.worker);
    if constexpr (requires { e.submission; })
      if (!e.submission.is_none()) submissions_.insert(e.submission);
    return absl::OkStatus();
  }
  absl::Status Touch(const Record&, const core::TokensForgotten& e) {
    tokens_.insert(e.tokens.begin(), e.tokens.end());
    return absl::OkStatus();
  }
  absl::Status Touch(const Record&, const core::RequestsForgotten& e) {
    for (const core::RequestKey& key : e.requests)
      RETURN_IF_ERROR(DeleteRequest(key));
    return absl::OkStatus();
  }
  absl::Status Touch(const Record&, const core::StoreBackedUp&) { return absl::OkStatus(); }
  absl::Status Touch(const Record&, const core::CallsRefused&) { return absl::OkStatus(); }
  absl::Status Touch(const Record&, const core::ArtifactsPruned&) { return absl::OkStatus(); }
  absl::Status Touch(const Record&, const core::DataLossAccepted&) { return absl::OkStatus(); }

  // A request that its caller has not named cannot be repeated.
  absl::Status WriteRequest(const Record& record, const core::RequestKey& key,
                            const std::string& made) {
    if (key.request_id.empty()) return absl::OkStatus();
    return sql_.insert_request.Run(key.standing.role, key.standing.organization, key.principal,
                                   key.request_id, made, record.at_us);
  }
  absl::Status DeleteRequest(const core::RequestKey& key) {
    return sql_.delete_request.Run(key.standing.role, key.standing.organization, key.principal,
                                   key.request_id);
  }
  absl::Status TouchSubmission(core::SubmissionId id) {
    submissions_.insert(id);
    return absl::OkStatus();
  }
  void TouchNewRun(const core::SubmissionSpec& spec, core::RunId id) {
    runs_.insert(id);
    if (const core::SourceArchive* source = core::SourceOf(spec.workload))
      artifacts_.push_back({id, core::AsArtifact(*source), /*is_late=*/false});
  }
  absl::Status TouchRun(core::RunId id) {
    runs_.insert(id);
    return absl::OkStatus();
  }
  absl::Status TouchNode(core::RunId id, int32_t rank) {
    nodes_.emplace(id, rank);
    return absl::OkStatus();
  }
  absl::Status TouchWorker(const std::string& name) {
    workers_.insert(name);
    return absl::OkStatus();
  }

  // Parents before children: foreign keys are checked at each statement.
  absl::Status WriteTouched() {
    std::set<core::SubmissionId> changed = submissions_;
    for (const core::SubmissionId id : submissions_) {
      RETURN_IF_ERROR(WriteSubmission(state_.submissions.at(id)));
      RETURN_IF_ERROR(sql_.facts.Write(state_.submissions.at(id), new_.contains(id)));
    }
    for (const core::RunId id : runs_) {
      RETURN_IF_ERROR(WriteRun(state_.runs.at(id)));
      RETURN_IF_ERROR(sql_.facts.Write(state_.runs.at(id)));
      changed.insert(state_.runs.at(id).submission);
    }
    for (const core::SubmissionId id : changed)
      RETURN_IF_ERROR(sql_.facts.Summarize(id));
    for (const auto& [run, rank] : nodes_)
      RETURN_IF_ERROR(WriteNode(run, rank));
    for (const auto& [run, artifact, is_late] : artifacts_)
      RETURN_IF_ERROR(sql_.insert_artifact.Run(run.number, artifact.file_name, artifact.sha256,
                                               artifact.size_bytes, is_late));
    for (const core::AllocationId id : allocations_) {
      const core::Allocation& allocation = state_.allocations.at(id);
      RETURN_IF_ERROR(
          sql_.upsert_allocation.Run(id.number, ToString(allocation.state), Encode(allocation)));
    }
    for (const std::string& name : workers_) {
      const core::Worker& worker = state_.workers.at(name);
      RETURN_IF_ERROR(sql_.upsert_worker.Run(name, ToString(worker.state), worker.run.number,
                                             worker.allocation.number, worker.is_forgotten,
                                             Encode(worker)));
    }
    for (const core::TokenId id : tokens_) {
      const core::Token& token = state_.tokens.at(id);
      RETURN_IF_ERROR(
          sql_.upsert_token.Run(id.number, token.secret_sha256, token.is_forgotten, Encode(token)));
    }
    return absl::OkStatus();
  }

  absl::Status WriteSubmission(const core::Submission& submission) {
    const core::SubmissionSpec& spec = submission.spec;
    RETURN_IF_ERROR(sql_.upsert_submission.Run(submission.id.number, ToString(submission.state),
                                               spec.organization, spec.system, spec.benchmark,
                                               spec.division, spec.round, submission.created_at_us,
                                               submission.ended_at_us, Encode(submission)));
    return sql_.upsert_disclosure.Run(submission.id.number, spec.organization,
                                      submission.published_at_us);
  }

  absl::Status WriteRun(const core::Run& run) {
    // A run that was restored for late evidence has its row, and with it the organisation.
    const auto it = state_.submissions.find(run.submission);
    const std::string none;
    const std::string& organization =
        it == state_.submissions.end() ? none : it->second.spec.organization;
    return sql_.upsert_run.Run(run.id.number, run.submission.number, run.number,
                               ToString(run.state), organization, Encode(run));
  }

  absl::Status WriteNode(core::RunId run, int32_t rank) {
    const core::RunNode& node = state_.runs.at(run).nodes[static_cast<size_t>(rank)];
    return sql_.upsert_node.Run(run.number, rank, node.worker, ToString(node.phase), node.exit_code,
                                node.reason, node.is_lost, node.is_released, node.last_seq,
                                node.clock_offset_us, node.clock_offset_uncertainty_us,
                                node.first_touch_us, node.observed_touch_us);
  }

  Statements& sql_;
  const core::State& state_;
  std::string& chain_;
  std::set<core::SubmissionId> submissions_;
  std::set<core::SubmissionId> new_;  // of them
  std::set<core::RunId> runs_;
  std::set<std::pair<core::RunId, int32_t>> nodes_;
  std::set<core::AllocationId> allocations_;
  std::set<std::string> workers_;
  std::set<core::TokenId> tokens_;
  std::vector<core::ArtifactRecorded> artifacts_;
};

absl::Status Store::SaveCounters(const core::State& state) {
  struct Counter {
    const char* name;
    int64_t value;
    int64_t* saved;
  };
  for (const Counter& counter :
       {Counter{"last_submission", state.last_submission, &saved_last_submission_},
        Counter{"last_run", state.last_run, &saved_last_run_},
        Counter{"last_token", state.last_token, &saved_last_token_},
        Counter{"last_allocation", state.last_allocation, &saved_last_allocation_}}) {
    if (counter.value == *counter.saved) continue;
    RETURN_IF_ERROR(
        statements_->upsert_counter.Run(absl::string_view(counter.name), counter.value));
    *counter.saved = counter.value;
  }
  return absl::OkStatus();
}

absl::Status Store::Commit(const core::Outcome& outcome, const core::State& state) {
  if (outcome.events.empty()) return absl::OkStatus();
  std::string chain = head_.chain;
  absl::Status status = statements_->db.Transact([&] {
    RETURN_IF_ERROR(Writer(statements_.get(), state, &chain).Write(outcome));
    return SaveCounters(state);
  });
  // What was saved is gone with the transaction.
  if (!status.ok())
    saved_last_submission_ = saved_last_run_ = saved_last_token_ = saved_last_allocation_ = -1;
  RETURN_IF_ERROR(Annotate(status, "commit"));
  head_.seq = outcome.events.back().seq;
  head_.chain = std::move(chain);
  head_.last_submission = state.last_submission;
  head_.last_run = state.last_run;
  head_.last_token = state.last_token;
  WriteMark();
  return absl::OkStatus();
}

int64_t Store::wal_frames() const {
  return statements_->db.wal_frames();
}

absl::Status Store::Checkpoint() {
  return statements_->db.Checkpoint();
}

int64_t Store::FreeDiskBytes() const {
  struct statvfs info = {};
  // Where it cannot be told, a commit will find out.
  if (statvfs(statements_->path.c_str(), &info) != 0) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

absl::StatusOr<std::vector<std::string>> Store::CompareFacts() {
  return FactDifferences(&statements_->db);
}

absl::Status Store::LimitPages(int64_t page_count) {
  return statements_->db.Exec(absl::StrCat("PRAGMA max_page_count = ", page_count));
}

void Store::LimitRowBytes(int bytes) {
  statements_->db.LimitRowBytes(bytes);
}

}  // namespace assay::store
