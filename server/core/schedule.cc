#include "server/core/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/exit_code.h"
#include "server/core/cache_orders.h"
#include "server/core/decide.h"
#include "server/core/node_checks.h"

namespace assay::core {
namespace {

// ---------------------------------------------------------------------------------------- silence

// When silence next makes a difference to the worker; nullopt: never again.
std::optional<int64_t> SilenceDeadline(const Worker& worker, const Presence& presence,
                                       const Policy& policy) {
  switch (worker.state) {
    case WorkerState::kAlive:
      return presence.last_seen_us + policy.suspect_after_us;
    case WorkerState::kSuspect:
    case WorkerState::kDraining:
      return presence.last_seen_us + policy.lost_after_us;
    case WorkerState::kLost:
    case WorkerState::kGone:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string Seconds(int64_t duration_us) {
  return absl::StrCat(duration_us / 1'000'000, " s");
}

// ------------------------------------------------------------------------------------------- runs

// How well the end of a node explains that its run failed; 0 if it does not. Ranks that notice a
// dead peer, or are stopped because of it, often report before the one that died.
int Blame(const RunNode& node) {
  if (node.phase != NodePhase::kFinished) return node.is_lost ? 3 : 0;
  if (node.exit_code == static_cast<int>(ExitCode::kOk)) return 0;
  if (IsTrainerFailure(node.exit_code)) return 5;
  if (node.exit_code > static_cast<int>(ExitCode::kUnknownSignal)) return 4;
  if (node.exit_code == static_cast<int>(ExitCode::kNodeFailed)) return 4;
  return node.exit_code == static_cast<int>(ExitCode::kCommLost) ? 2 : 1;
}

// The node whose end explains best why the run failed; nullptr if none has failed.
const RunNode* FindCulprit(const Run& run) {
  const RunNode* culprit = nullptr;
  for (const RunNode& node : run.nodes)
    if (Blame(node) > (culprit == nullptr ? 0 : Blame(*culprit))) culprit = &node;
  return culprit;
}

// nullopt where nothing ever came back.
std::optional<int32_t> ExitCodeOf(const RunNode& node) {
  if (node.phase != NodePhase::kFinished) return std::nullopt;
  return node.exit_code;
}

// "; the others on n1, n2, n3 and 4 more": one of whom may be gone, or the network between.
std::string DescribePeers(const Run& run, const RunNode& node) {
  constexpr size_t kNamedMax = 3;
  std::vector<absl::string_view> named;
  for (const RunNode& peer : run.nodes)
    if (&peer != &node && named.size() < kNamedMax) named.push_back(peer.worker);
  if (named.empty()) return "";
  const size_t more = run.nodes.size() - 1 - named.size();
  return absl::StrCat("; the others on ", absl::StrJoin(named, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

std::string DescribeFailure(const Run& run, const RunNode& node, const Policy& policy) {
  constexpr int kSignalBase = static_cast<int>(ExitCode::kUnknownSignal);
  if (node.phase != NodePhase::kFinished)
    return absl::StrCat("unknown: worker ", node.worker, " was silent for longer than ",
                        Seconds(policy.lost_after_us));
  const std::string peers =
      node.exit_code == static_cast<int>(ExitCode::kCommLost) ? DescribePeers(run, node) : "";
  if (!node.reason.empty()) return absl::StrCat(node.reason, " (", node.worker, peers, ")");
  const std::string text =
      absl::StrCat("rank ", &node - run.nodes.data(), " on ", node.worker, ": ");
  if (node.exit_code > kSignalBase)
    return absl::StrCat(text, "killed by signal ", node.exit_code - kSignalBase);
  return absl::StrCat(text, Describe(static_cast<ExitCode>(node.exit_code)),
                      peers.empty() ? "" : absl::StrCat(" (", peers.substr(2), ")"));
}

bool AllReached(const Run& run, NodePhase phase) {
  return std::all_of(run.nodes.begin(), run.nodes.end(),
                     [phase](const RunNode& node) { return node.phase >= phase; });
}

std::optional<int64_t> TimeoutUs(const State& state, const Run& run, const Policy& policy) {
  if (run.state != RunState::kAssigned && run.state != RunState::kRunning) return std::nullopt;
  const int64_t since_us = run.started_at_us != 0 ? run.started_at_us : run.assigned_at_us;
  const SubmissionSpec& spec = state.submissions.at(run.submission).spec;
  return since_us + spec.run_timeout_ms * 1000 + policy.run_timeout_grace_us;
}

// ------------------------------------------------------------------------------------ submissions

struct Tally {
  int32_t good = 0;       // not failed, not cancelled
  int32_t succeeded = 0;  // of these
  bool is_any_unsettled = false;
  const Run* final_failure = nullptr;  // the first that cannot be replaced
  const Run* last_failure = nullptr;   // the last that can
};

Tally Count(const State& state, const Submission& submission) {
  Tally tally;
  for (const RunId id : submission.runs) {
    const Run& run = state.runs.at(id);
    if (run.state == RunState::kFailed && !IsSettled(run)) tally.is_any_unsettled = true;
    if (run.state == RunState::kFailed && IsSettled(run)) {
      if (IsInfrastructureFailure(run, submission.spec.workload)) {
        tally.last_failure = &run;
      } else if (tally.final_failure == nullptr) {
        tally.final_failure = &run;
      }
    }
    if (run.state == RunState::kSucceeded) ++tally.succeeded;
    if (run.state != RunState::kFailed && run.state != RunState::kCancelled) ++tally.good;
  }
  return tally;
}

std::string DescribeFinalFailure(const Run& run) {
  return absl::StrCat("run ", run.id.ToString(), " failed: ", run.state_reason);
}

// For each failed run that was put down to a rank that merely noticed: the rank that explains it,
// once that one has reported.
std::vector<Event> ExplainFailures(const State& state, const Submission& submission,
                                   const Policy& policy) {
  std::vector<Event> events;
  for (const RunId id : submission.runs) {
    const Run& run = state.runs.at(id);
    const bool is_by_bystander = run.state == RunState::kFailed && run.exit_code.has_value() &&
                                 IsConsequence(*run.exit_code);
    if (!is_by_bystander) continue;
    const RunNode& culprit = *FindCulprit(run);
    if (culprit.phase == NodePhase::kFinished && culprit.exit_code == run.exit_code) continue;
    events.push_back(RunFailureExplained{.run = id,
                                         .reason = DescribeFailure(run, culprit, policy),
                                         .exit_code = ExitCodeOf(culprit)});
  }
  return events;
}

// The instances of a throughput set start together, so one that fails is left out (HPC rules,
// "Throughput"): the set goes on as long as enough are left.
std::vector<Event> AdvanceInstances(const State& state, const Submission& submission,
                                    const Tally& tally) {
  if (tally.is_any_unsettled) return {};
  const int32_t required = submission.rules.required_run_count;
  if (tally.good < required) {
    const Run* const failure =
        tally.final_failure != nullptr ? tally.final_failure : tally.last_failure;
    return Close(
        state, submission, SubmissionState::kInvalid,
        absl::StrCat("only ", tally.good, " of at least ", required, " instances are left: ",
                     failure == nullptr ? "" : DescribeFinalFailure(*failure)));
  }
  if (tally.succeeded < tally.good) return {};
  return {SubmissionCheckStarted{.submission = submission.id}};
}

}  // namespace

void GiveUp(const State& state, const Worker& worker, std::vector<Event>* events) {
  if (worker.run.is_none()) return;
  const Run& run = state.runs.at(worker.run);
  for (size_t rank = 0; rank < run.nodes.size(); ++rank) {
    const RunNode& node = run.nodes[rank];
    if (node.worker == worker.name && node.phase != NodePhase::kFinished)
      events->push_back(NodeGivenUp{.run = run.id, .node_rank = static_cast<int32_t>(rank)});
  }
  events->push_back(WorkerReleased{.worker = worker.name, .run = run.id});
}

void Lose(const State& state, const Worker& worker, const std::string& reason,
          std::vector<Event>* events) {
  if (worker.run.is_none()) return;
  const Run& run = state.runs.at(worker.run);
  GiveUp(state, worker, events);
  const bool is_finished =
      std::any_of(run.nodes.begin(), run.nodes.end(), [&worker](const RunNode& node) {
        return node.worker == worker.name && node.phase == NodePhase::kFinished;
      });
  const bool is_failed = std::any_of(events->begin(), events->end(), [&run](const Event& event) {
    const auto* failed = std::get_if<RunFailed>(&event);
    return failed != nullptr && failed->run == run.id;
  });
  // A part that it has finished was reported while its word still counted.
  if (is_finished || is_failed || IsTerminal(run.state)) return;
  events->push_back(RunFailed{.run = run.id, .reason = reason});
}

std::vector<Event> WatchPresence(const State& state, const PresenceMap& presence,
                                 const Policy& policy, int64_t now_us) {
  std::vector<Event> events;
  for (const auto& [name, worker] : state.workers) {
    const auto it = presence.find(name);
    if (it == presence.end()) continue;
    const std::optional<int64_t> deadline_us = SilenceDeadline(worker, it->second, policy);
    if (!deadline_us.has_value() || now_us < *deadline_us) continue;
    const int64_t silence_us = now_us - it->second.last_seen_us;
    WorkerStateChanged change{.worker = name,
                              .state = WorkerState::kSuspect,
                              .reason = absl::StrCat("silent for ", Seconds(silence_us)),
                              .is_drain_requested = worker.is_drain_requested};
    if (worker.state == WorkerState::kAlive) events.push_back(change);
    if (silence_us < policy.lost_after_us) continue;
    change.state = WorkerState::kLost;
    events.push_back(change);
    GiveUp(state, worker, &events);
  }
  return events;
}

std::vector<Event> AdvanceRun(const State& state, const Run& run, const Policy& policy,
                              int64_t now_us) {
  if (run.state != RunState::kAssigned && run.state != RunState::kRunning) return {};
  if (const RunNode* culprit = FindCulprit(run); culprit != nullptr)
    return {RunFailed{.run = run.id,
                      .reason = DescribeFailure(run, *culprit, policy),
                      .exit_code = ExitCodeOf(*culprit)}};
  if (now_us >= *TimeoutUs(state, run, policy))
    return {
        RunFailed{.run = run.id,
                  .reason = absl::StrCat(run.state == RunState::kRunning ? "ran" : "was assigned",
                                         " for longer than its run_timeout"),
                  .is_replaceable = false}};
  std::vector<Event> events;
  if (run.state == RunState::kAssigned && AllReached(run, NodePhase::kExecuting))
    events.push_back(RunStarted{.run = run.id});
  if (AllReached(run, NodePhase::kFinished)) events.push_back(RunUploaded{.run = run.id});
  return events;
}

std::vector<Event> AdvanceSubmission(const State& state, const Submission& submission,
                                     const Policy& policy) {
  if (submission.state != SubmissionState::kOpen && submission.state != SubmissionState::kRunning)
    return {};
  // They advance the submission again, so that it ends with the better reason.
  if (std::vector<Event> events = ExplainFailures(state, submission, policy); !events.empty())
    return events;
  const Tally tally = Count(state, submission);
  if (IsThroughput(submission.spec)) return AdvanceInstances(state, submission, tally);
  if (tally.final_failure != nullptr)
    return Close(state, submission, SubmissionState::kInvalid,
                 DescribeFinalFailure(*tally.final_failure));
  if (tally.succeeded == submission.spec.run_count)
    return {SubmissionCheckStarted{.submission = submission.id}};
  // A run that has failed but still executes somewhere may turn out to have failed by itself.
  if (tally.is_any_unsettled || tally.good >= submission.spec.run_count) return {};
  if (submission.replacement_count >= submission.spec.replacement_count_max)
    return Close(state, submission, SubmissionState::kInvalid,
                 absl::StrCat("run ", tally.last_failure->id.ToString(), " failed (",
                              tally.last_failure->state_reason, ") and all ",
                              submission.spec.replacement_count_max,
                              " replacements that the submission allows are used up"));
  return {RunQueued{.run = RunId{state.last_run + 1},
                    .submission = submission.id,
                    .replaces = tally.last_failure->id}};
}

std::optional<int64_t> NextDeadlineUs(const State& state, const PresenceMap& presence,
                                      const Policy& policy, int64_t now_us) {
  std::optional<int64_t> next;
  const auto consider = [&next](std::optional<int64_t> deadline_us) {
    if (deadline_us.has_value()) next = std::min(next.value_or(*deadline_us), *deadline_us);
  };
  for (const auto& [name, worker] : state.workers) {
    const auto it = presence.find(name);
    if (it != presence.end()) consider(SilenceDeadline(worker, it->second, policy));
    if (const Preflight* preflight = FindRunning(worker); preflight != nullptr)
      consider(preflight->deadline_us);
    consider(NextCacheRetryUs(worker));
  }
  for (const RunId id : state.active)
    consider(TimeoutUs(state, state.runs.at(id), policy));
  for (const auto& [id, allocation] : state.allocations) {
    if (allocation.state == AllocationState::kEnded) continue;
    // What is past was seen to; it may take long.
    for (const int64_t at_us : {allocation.retry_at_us, allocation.deadline_us})
      if (at_us > now_us) consider(at_us);
  }
  return next;
}

}  // namespace assay::core
