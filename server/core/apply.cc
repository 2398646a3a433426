#include "server/core/apply.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "server/core/apply_allocation.h"
#include "server/core/cache_orders.h"
#include "server/core/gang_touch.h"
#include "server/core/node_checks.h"
#include "server/core/transitions.h"

namespace assay::core {
namespace {

void KeepEarlier(std::optional<int64_t> at_us, std::optional<int64_t>* earliest_us) {
  if (at_us.has_value()) *earliest_us = std::min(earliest_us->value_or(*at_us), *at_us);
}

// One overload per event. `at_us` and `principal` come from the record.
class Applier {
 public:
  Applier(const RecordedEvent& record, State* state) : record_(record), state_(*state) {}

  void operator()(const SubmissionCreated& e);
  void operator()(const SubmissionImported& e);
  void operator()(const SubmissionCheckStarted& e);
  void operator()(const SubmissionClosed& e);
  void operator()(const SubmissionNoted& e);
  void operator()(const SubmissionPublished& e);
  void operator()(const SubmissionWithdrawn& e);
  void operator()(const InstancesPruned& e);
  void operator()(const RunQueued& e);
  void operator()(const RunAssigned& e);
  void operator()(const NodeStarted& e);
  void operator()(const RunStarted& e);
  void operator()(const NodeFinished& e);
  void operator()(const NodeGivenUp& e);
  void operator()(const RunUploaded& e);
  void operator()(const RunJudged& e);
  void operator()(const RunFailed& e);
  void operator()(const RunFailureExplained& e);
  void operator()(const RunCancelled& e);
  void operator()(const RunEventsAppended& e);
  void operator()(const ArtifactRecorded& e);
  void operator()(const WorkerRegistered& e);
  void operator()(const WorkerDescribed& e);
  void operator()(const WorkerStateChanged& e);
  void operator()(const WorkerRevoked& e);
  void operator()(const WorkerLabelled& e);
  void operator()(const WorkerReleased& e);
  void operator()(const PreflightStarted& e);
  void operator()(const PreflightFinished& e);
  void operator()(const TokenCreated& e);
  void operator()(const TokenRevoked& e);
  void operator()(const DatasetAdded& e);
  void operator()(const DatasetRemoved& e);
  void operator()(const ViewSaved& e);
  void operator()(const ViewRemoved& e);
  void operator()(const CacheOrdered& e) { ApplyCache(record_, e, &GetWorker(e.worker)); }
  void operator()(const CacheOrderEnded& e) { ApplyCache(record_, e, &GetWorker(e.worker)); }
  void operator()(const CacheOrderPostponed& e) { ApplyCache(record_, e, &GetWorker(e.worker)); }
  void operator()(const CacheOrderRetried& e) { ApplyCache(record_, e, &GetWorker(e.worker)); }
  void operator()(const DataLossAccepted& e);
  // Of the disk alone.
  void operator()(const StoreBackedUp&) {}
  void operator()(const CallsRefused&) {}
  void operator()(const ArtifactsPruned&) {}
  template <AboutLease E>
  void operator()(const E& e) {
    ApplyLease(record_, e, &state_);
  }

 private:
  template <typename Map, typename Key>
  auto& Get(Map& map, const Key& key) {
    const auto it = map.find(key);
    CHECK(it != map.end()) << "event=" << record_.seq << " names something unknown key=" << key;
    return it->second;
  }
  Submission& Get(SubmissionId id) { return Get(state_.submissions, id); }
  Run& Get(RunId id) { return Get(state_.runs, id); }
  Worker& GetWorker(const std::string& name) { return Get(state_.workers, name); }
  // Makes it if there is none; one that was forgotten begins anew.
  Worker& AddWorker(const std::string& name) {
    Worker& worker = state_.workers[name];
    if (worker.is_forgotten) worker = {};
    return worker;
  }
  RunNode& GetNode(RunId run, int32_t rank) {
    std::vector<RunNode>& nodes = Get(run).nodes;
    CHECK(rank >= 0 && static_cast<size_t>(rank) < nodes.size()) << "event=" << record_.seq;
    return nodes[static_cast<size_t>(rank)];
  }

  void Move(Submission* submission, SubmissionState target);
  void Move(Run* run, RunState target);
  void AddRun(RunId id, SubmissionId submission_id);
  void Remember(const Standing& standing, const std::string& request_id, std::string made);

  const RecordedEvent& record_;
  State& state_;
};

void Applier::Move(Submission* submission, SubmissionState target) {
  CHECK_OK(CheckMove(submission->state, target));
  submission->state = target;
  if (!IsTerminal(target)) return;
  submission->ended_at_us = record_.at_us;
  std::erase_if(state_.passed, [submission](const auto& entry) {
    return entry.first.submission == submission->id;
  });
  state_.closed.insert(submission->id);
}

void Applier::Move(Run* run, RunState target) {
  CHECK_OK(CheckMove(run->state, target));
  run->state = target;
  state_.queued.erase(run->id);
  if (IsTerminal(target)) {
    state_.active.erase(run->id);
    run->ended_at_us = record_.at_us;
  } else {
    state_.active.insert(run->id);
  }
}

void Applier::AddRun(RunId id, SubmissionId submission_id) {
  CHECK(id.number == state_.last_run + 1) << "run=" << id;
  state_.last_run = id.number;
  Submission& submission = Get(submission_id);
  const size_t index = submission.runs.size();
  CHECK(index < submission.seeds.size()) << "submission=" << submission_id << " has no seed left";
  Run run;
  run.id = id;
  run.submission = submission_id;
  run.number = static_cast<int32_t>(index) + 1;
  run.seed = submission.seeds[index];
  run.created_at_us = record_.at_us;
  if (const SourceArchive* source = SourceOf(submission.spec.workload))
    run.artifacts.push_back(AsArtifact(*source));
  submission.runs.push_back(id);
  state_.runs.emplace(id, std::move(run));
  state_.queued.insert(id);
}

void Applier::Remember(const Standing& standing, const std::string& request_id, std::string made) {
  if (request_id.empty()) return;
  state_.requests[{standing, record_.principal, request_id}] = {std::move(made), record_.at_us};
}

void Applier::operator()(const SubmissionCreated& e) {
  CHECK(e.submission.number == state_.last_submission + 1) << "submission=" << e.submission;
  state_.last_submission = e.submission.number;
  Submission submission;
  submission.id = e.submission;
  submission.spec = e.spec;
  submission.rules = e.rules;
  submission.submitter = record_.principal;
  submission.created_at_us = record_.at_us;
  submission.seeds = e.seeds;
  submission.findings = e.findings;
  submission.borrowing = e.borrowing;
  if (IsThroughput(e.spec)) submission.scaling = "weak";
  if (e.spec.borrowing) state_.borrowings.emplace(e.spec.borrowing->own, e.submission);
  state_.submissions.emplace(e.submission, std::move(submission));
  for (int32_t k = 0; k < e.spec.run_count; ++k)
    AddRun(RunId{e.first_run.number + k}, e.submission);
  Remember(e.standing, e.request_id, e.submission.ToString());
}

void Applier::operator()(const SubmissionImported& e) {
  const SubmissionId id = e.submission.id;
  CHECK(id.number == state_.last_submission + 1) << "submission=" << id;
  state_.last_submission = id.number;
  state_.submissions.emplace(id, e.submission);
  state_.closed.insert(id);
  for (const Run& run : e.runs) {
    CHECK(run.id.number == state_.last_run + 1) << "run=" << run.id;
    state_.last_run = run.id.number;
    state_.runs.emplace(run.id, run);
  }
  state_.imports.emplace(ImportSource{e.submission.spec.round, e.submission.source_path}, id);
}

void Applier::operator()(const SubmissionCheckStarted& e) {
  Move(&Get(e.submission), SubmissionState::kChecking);
}

void Applier::operator()(const SubmissionClosed& e) {
  Submission& submission = Get(e.submission);
  Move(&submission, e.state);
  submission.state_reason = e.reason;
  submission.score_minutes = e.score_minutes;
  submission.convergence = e.convergence;
  submission.throughput = e.throughput;
  for (const RunId run : submission.runs)
    submission.measured_at_us = EarlierStart(submission.measured_at_us, Get(run).facts);
  // What was cancelled replaces nothing.
  if (submission.spec.borrowing && e.state == SubmissionState::kCancelled)
    state_.borrowings.erase(submission.spec.borrowing->own);
  submission.findings.insert(submission.findings.end(), e.findings.begin(), e.findings.end());
}

void Applier::operator()(const SubmissionNoted& e) {
  Get(e.submission)
      .notes.push_back({.author = record_.principal,
                        .organization = e.standing.organization,
                        .at_us = record_.at_us,
                        .text = e.text});
  Remember(e.standing, e.request_id, e.submission.ToString());
}

void Applier::operator()(const SubmissionPublished& e) {
  Get(e.submission).published_at_us = e.published_at_us;
}

void Applier::operator()(const SubmissionWithdrawn& e) {
  Withdraw(e, record_.at_us, &Get(e.submission));
}

void Applier::operator()(const InstancesPruned& e) {
  Submission& submission = Get(e.submission);
  submission.pruned_runs = e.runs;
  submission.throughput = e.throughput;
  submission.convergence = e.convergence;
  submission.state_reason = e.reason;
}

void Applier::operator()(const RunQueued& e) {
  AddRun(e.run, e.submission);
  ++Get(e.submission).replacement_count;
}

void Applier::operator()(const RunAssigned& e) {
  Run& run = Get(e.run);
  Move(&run, RunState::kAssigned);
  CHECK(e.generation == run.generation + 1) << "run=" << e.run;
  run.generation = e.generation;
  run.assigned_at_us = record_.at_us;
  run.allocation = e.allocation;
  run.cached_workers = e.cached_workers;
  const auto lease = state_.allocations.find(e.allocation);
  run.has_submitters_nodes =
      lease != state_.allocations.end() && lease->second.spec.launcher == kSubmitterLauncher;
  run.nodes.clear();
  run.node_names.clear();
  for (const std::string& name : e.workers) {
    Worker& worker = GetWorker(name);
    CHECK(worker.run.is_none()) << "worker=" << name << " already holds run=" << worker.run;
    worker.run = e.run;
    worker.generation = e.generation;
    run.nodes.push_back(RunNode{.worker = name});
    run.node_names.push_back(NodeName(worker));
  }
  if (run.node_names == e.workers) run.node_names.clear();
}

void Applier::operator()(const NodeStarted& e) {
  RunNode& node = GetNode(e.run, e.node_rank);
  node.phase = NodePhase::kExecuting;
  node.clock_offset_us = e.clock_offset_us;
  node.clock_offset_uncertainty_us = e.clock_offset_uncertainty_us;
  FindFirstTouches(LeadAtStart, &Get(e.run));
}

void Applier::operator()(const RunStarted& e) {
  Run& run = Get(e.run);
  Move(&run, RunState::kRunning);
  run.started_at_us = record_.at_us;
  Submission& submission = Get(run.submission);
  if (submission.state == SubmissionState::kOpen) Move(&submission, SubmissionState::kRunning);
}

void Applier::operator()(const NodeFinished& e) {
  RunNode& node = GetNode(e.run, e.node_rank);
  node.phase = NodePhase::kFinished;
  node.exit_code = e.exit_code;
  node.reason = e.reason;
}

void Applier::operator()(const NodeGivenUp& e) {
  GetNode(e.run, e.node_rank).is_lost = true;
}

void Applier::operator()(const RunUploaded& e) {
  Run& run = Get(e.run);
  Move(&run, RunState::kUploading);
  run.exit_code = 0;
}

void Applier::operator()(const RunJudged& e) {
  Run& run = Get(e.run);
  Move(&run, RunState::kSucceeded);
  run.facts = e.facts;
}

void Applier::operator()(const RunFailed& e) {
  Run& run = Get(e.run);
  Move(&run, RunState::kFailed);
  run.state_reason = e.reason;
  run.exit_code = e.exit_code;
  run.is_replaceable = e.is_replaceable;
}

void Applier::operator()(const RunFailureExplained& e) {
  Run& run = Get(e.run);
  CHECK(run.state == RunState::kFailed) << "run=" << e.run;
  run.state_reason = e.reason;
  run.exit_code = e.exit_code;
}

void Applier::operator()(const RunCancelled& e) {
  Run& run = Get(e.run);
  Move(&run, RunState::kCancelled);
  run.state_reason = e.reason;
}

void Applier::operator()(const RunEventsAppended& e) {
  RunNode& node = GetNode(e.run, e.node_rank);
  CHECK(e.first_seq == node.last_seq + 1) << "run=" << e.run << " rank=" << e.node_rank;
  node.last_seq = e.last_seq;
  KeepEarlier(e.first_touch_us, &node.first_touch_us);
  KeepEarlier(e.observed_touch_us, &node.observed_touch_us);
  FindFirstTouches(LeadAtStart, &Get(e.run));
}

void Applier::operator()(const ArtifactRecorded& e) {
  Run& run = Get(e.run);
  (e.is_late ? run.late_artifacts : run.artifacts).push_back(e.artifact);
}

void Applier::operator()(const WorkerRegistered& e) {
  Worker& worker = AddWorker(e.worker);
  worker.name = e.worker;
  worker.allocation = {};  // it may come back as another's
  worker.state = worker.is_drain_requested ? WorkerState::kDraining : WorkerState::kAlive;
  worker.state_reason = "";
  worker.state_since_us = record_.at_us;
  worker.description = e.description;
}

void Applier::operator()(const WorkerDescribed& e) {
  GetWorker(e.worker).description = e.description;
}

void Applier::operator()(const WorkerStateChanged& e) {
  Worker& worker = GetWorker(e.worker);
  CHECK_OK(CheckMove(worker.state, e.state));
  if (worker.state != e.state) worker.state_since_us = record_.at_us;
  worker.state = e.state;
  worker.state_reason = e.reason;
  worker.is_drain_requested = e.is_drain_requested;
}

void Applier::operator()(const WorkerRevoked& e) {
  Worker& worker = AddWorker(e.worker);
  if (worker.name.empty()) {  // it could have called, but has not yet
    worker.name = e.worker;
    worker.state = WorkerState::kGone;
  }
  CHECK(e.certificate_generation == worker.certificate_generation + 1) << "worker=" << e.worker;
  CHECK_OK(CheckMove(worker.state, WorkerState::kGone));
  worker.state = WorkerState::kGone;
  worker.state_reason = e.reason;
  worker.state_since_us = record_.at_us;
  worker.certificate_generation = e.certificate_generation;
  worker.certificates_revoked_at_us = record_.at_us;
}

void Applier::operator()(const WorkerLabelled& e) {
  GetWorker(e.worker).operator_labels = e.labels;
}

void Applier::operator()(const WorkerReleased& e) {
  Worker& worker = GetWorker(e.worker);
  CHECK(worker.run == e.run) << "worker=" << e.worker << " holds run=" << worker.run;
  worker.run = RunId{};
  worker.generation = 0;
  for (RunNode& node : Get(e.run).nodes)
    if (node.worker == e.worker) node.is_released = true;
}

void Applier::operator()(const PreflightStarted& e) {
  ApplyPreflightStart(record_, e, state_, &GetWorker(e.worker));
}

void Applier::operator()(const PreflightFinished& e) {
  ApplyPreflight(record_, e, &GetWorker(e.worker), &state_);
}

void Applier::operator()(const TokenCreated& e) {
  CHECK(e.token.id.number == state_.last_token + 1) << "token=" << e.token.id;
  state_.last_token = e.token.id.number;
  state_.tokens.emplace(e.token.id, e.token);
  Remember(e.standing, e.request_id, e.token.id.ToString());
}

void Applier::operator()(const TokenRevoked& e) {
  Token& token = Get(state_.tokens, e.token);
  token.is_revoked = true;
  token.revoked_at_us = record_.at_us;
}

void Applier::operator()(const DatasetAdded& e) {
  state_.datasets[e.dataset.id] = e.dataset;
}

void Applier::operator()(const DatasetRemoved& e) {
  state_.datasets.erase(e.dataset);
}

void Applier::operator()(const ViewSaved& e) {
  state_.views[e.view.key()] = e.view;
}

void Applier::operator()(const ViewRemoved& e) {
  state_.views.erase({e.standing, record_.principal, e.view});
}

void Applier::operator()(const DataLossAccepted& e) {
  state_.last_submission = std::max(state_.last_submission, e.last_submission);
  state_.last_run = std::max(state_.last_run, e.last_run);
  state_.last_token = std::max(state_.last_token, e.last_token);
  // Each allocation took an event: there were no more of them than that.
  state_.last_allocation = std::max(state_.last_allocation, e.last_lost_seq);
}

bool IsHeld(const Run& run, const State& state) {
  return std::any_of(run.nodes.begin(), run.nodes.end(), [&](const RunNode& node) {
    const auto it = state.workers.find(node.worker);
    return it != state.workers.end() && it->second.run == run.id;
  });
}

}  // namespace

void Apply(const RecordedEvent& event, State* state) {
  const bool is_after_loss = std::holds_alternative<DataLossAccepted>(event.event);
  CHECK(event.seq == state->last_seq + 1 || (is_after_loss && event.seq > state->last_seq))
      << "seq=" << event.seq;
  state->last_seq = event.seq;
  std::visit(Applier(event, state), event.event);
}

bool DropIfRedundant(RunId run, State* state) {
  const auto it = state->runs.find(run);
  if (it == state->runs.end()) return true;
  if (state->submissions.count(it->second.submission) > 0 || IsHeld(it->second, *state))
    return false;
  state->runs.erase(it);
  return true;
}

bool DropIfRedundant(SubmissionId submission, State* state) {
  const auto it = state->submissions.find(submission);
  CHECK(it != state->submissions.end()) << "submission=" << submission;
  const auto is_held = [state](RunId run) { return IsHeld(state->runs.at(run), *state); };
  const std::vector<RunId>& runs = it->second.runs;
  if (!IsTerminal(it->second.state) || std::any_of(runs.begin(), runs.end(), is_held)) return false;
  for (const RunId run : runs)
    state->runs.erase(run);
  state->submissions.erase(it);
  state->closed.erase(submission);
  return true;
}

void DropAllRedundant(State* state) {
  const std::set<SubmissionId> closed = state->closed;
  for (const SubmissionId id : closed)
    DropIfRedundant(id, state);
  std::erase_if(state->tokens, [](const auto& entry) { return entry.second.is_forgotten; });
  std::erase_if(state->workers, [](const auto& entry) { return entry.second.is_forgotten; });
  std::set<AllocationId> used;
  for (const auto& [name, worker] : state->workers)
    used.insert(worker.allocation);
  std::erase_if(state->allocations, [&used](const auto& entry) {
    return entry.second.state == AllocationState::kEnded && !used.contains(entry.first);
  });
}

void Index(State* state) {
  state->queued.clear();
  state->active.clear();
  state->closed.clear();
  for (const auto& [id, submission] : state->submissions)
    if (IsTerminal(submission.state)) state->closed.insert(id);
  for (const auto& [id, run] : state->runs) {
    if (run.state == RunState::kQueued) {
      state->queued.insert(id);
    } else if (!IsTerminal(run.state)) {
      state->active.insert(id);
    }
  }
}

}  // namespace assay::core
