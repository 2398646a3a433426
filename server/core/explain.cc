#include "server/core/explain.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "server/core/feasible.h"

namespace assay::core {
namespace {

// The workers as one spec sees them.
struct Census {
  int32_t matching = 0;         // in any state but GONE
  int32_t silent = 0;           // of these, SUSPECT or LOST
  int32_t draining = 0;         // of these
  int32_t free = 0;             // of these
  int64_t silent_since_us = 0;  // the latest
};

Census Count(const State& state, const PresenceMap& presence, const SubmissionSpec& spec) {
  Census census;
  for (const auto& [name, worker] : state.workers) {
    if (worker.state == WorkerState::kGone || !Matches(worker, spec)) continue;
    ++census.matching;
    if (worker.state == WorkerState::kSuspect || worker.state == WorkerState::kLost) {
      ++census.silent;
      census.silent_since_us = std::max(census.silent_since_us, worker.state_since_us);
    }
    if (worker.state == WorkerState::kDraining) ++census.draining;
    if (IsFree(worker, presence)) ++census.free;
  }
  return census;
}

std::string DescribeWish(const SubmissionSpec& spec) {
  std::string text = absl::StrCat(spec.node_count, spec.node_count == 1 ? " worker" : " workers");
  const std::string& backend = BackendOf(spec.workload);
  if (!backend.empty()) absl::StrAppend(&text, " with backend ", backend);
  if (!spec.worker_labels.empty())
    absl::StrAppend(&text, " labelled ",
                    absl::StrJoin(spec.worker_labels, ", ", absl::PairFormatter("=")));
  return text;
}

// The first run before `run` that waits and could use a worker that `spec` could use.
RunId FindEarlierRival(const State& state, RunId run, const SubmissionSpec& spec) {
  for (const RunId earlier : state.queued) {
    if (earlier >= run) break;
    const SubmissionSpec& other = state.submissions.at(state.runs.at(earlier).submission).spec;
    const bool is_rival =
        CountPresent(state, other) >= other.node_count &&
        std::any_of(state.workers.begin(), state.workers.end(), [&](const auto& entry) {
          return Matches(entry.second, spec) && Matches(entry.second, other);
        });
    if (is_rival) return earlier;
  }
  return RunId{};
}

Explanation ExplainTooFew(const Census& census, const SubmissionSpec& spec) {
  Explanation answer;
  const std::string wish = DescribeWish(spec);
  if (census.matching - census.draining >= spec.node_count) {
    answer.reason = WaitReason::kWorkersLost;
    answer.since_us = census.silent_since_us;
    answer.explanation = absl::StrCat("needs ", wish, "; of the ", census.matching, " that match, ",
                                      census.silent, " are silent");
    answer.remedy = "bring the silent workers back, or add others";
    return answer;
  }
  answer.reason = WaitReason::kLabels;
  answer.explanation = absl::StrCat("needs ", wish, "; ", census.matching, " match and ",
                                    census.draining, " of them are draining");
  answer.remedy = absl::StrCat("add ", spec.node_count - census.matching + census.draining,
                               " workers that match, or cancel and ask for less");
  return answer;
}

Explanation ExplainQueued(const State& state, const PresenceMap& presence, const Policy& policy,
                          RunId run, const SubmissionSpec& spec) {
  const Census census = Count(state, presence, spec);
  if (census.matching - census.silent - census.draining < spec.node_count)
    return ExplainTooFew(census, spec);
  Explanation answer;
  const int32_t limit = RunLimit(policy, spec.organization);
  const std::map<std::string, int32_t> active = CountActiveRuns(state);
  const auto it = active.find(spec.organization);
  if (limit > 0 && it != active.end() && it->second >= limit) {
    answer.reason = WaitReason::kOrganizationLimit;
    answer.explanation = absl::StrCat("organisation ", spec.organization, " has ", it->second,
                                      " runs on workers and may have ", limit);
    answer.remedy = "wait for one of them to end, or ask an operator to raise the limit";
    return answer;
  }
  const std::string numbers = absl::StrCat("needs ", DescribeWish(spec), "; ", census.free,
                                           " of the ", census.matching, " that match are free");
  if (const RunId rival = FindEarlierRival(state, run, spec); !rival.is_none()) {
    answer.reason = WaitReason::kPriority;
    answer.explanation = absl::StrCat(numbers, ", and run ", rival.ToString(), " was there before");
    answer.remedy = "wait for the runs before it, or add workers that match";
  } else if (census.free < spec.node_count) {
    answer.reason = WaitReason::kResources;
    answer.explanation = absl::StrCat(numbers, "; it is next in line for them");
    answer.remedy = "wait for a run to end, or add workers that match";
  } else {
    answer.reason = WaitReason::kNotWaiting;
    answer.explanation = absl::StrCat(numbers, "; it is about to be placed");
  }
  return answer;
}

Explanation ExplainOpen(const State& state, const PresenceMap& presence, const Policy& policy,
                        const Submission& submission) {
  int32_t active = 0;
  int32_t succeeded = 0;
  int64_t active_since_us = 0;
  RunId first_queued;
  for (const RunId id : submission.runs) {
    const Run& run = state.runs.at(id);
    if (run.state == RunState::kSucceeded) ++succeeded;
    if (state.active.count(id) > 0) {
      ++active;
      active_since_us = std::max(active_since_us, run.assigned_at_us);
    }
    if (run.state == RunState::kQueued && first_queued.is_none()) first_queued = id;
  }
  Explanation answer;
  if (active > 0) {
    answer.reason = WaitReason::kRunning;
    answer.since_us = active_since_us;
    answer.explanation = absl::StrCat(active, " of its ", submission.spec.run_count,
                                      " runs are on workers, ", succeeded, " have succeeded");
  } else if (first_queued.is_none()) {
    answer.explanation = submission.state == SubmissionState::kChecking
                             ? "all runs have ended; its score is being computed"
                             : "a failed run is being stopped on its last workers";
  } else {
    answer = ExplainQueued(state, presence, policy, first_queued, submission.spec);
    if (answer.since_us == 0) answer.since_us = state.runs.at(first_queued).created_at_us;
  }
  if (answer.since_us == 0) answer.since_us = submission.created_at_us;
  if (!first_queued.is_none())
    answer.queue_position =
        static_cast<int32_t>(std::distance(state.queued.begin(), state.queued.find(first_queued))) +
        1;
  return answer;
}

}  // namespace

absl::string_view ToString(WaitReason reason) {
  switch (reason) {
    case WaitReason::kResources:
      return "RESOURCES";
    case WaitReason::kPriority:
      return "PRIORITY";
    case WaitReason::kOrganizationLimit:
      return "ORGANIZATION_LIMIT";
    case WaitReason::kLabels:
      return "LABELS";
    case WaitReason::kWorkersLost:
      return "WORKERS_LOST";
    case WaitReason::kNotWaiting:
      return "NOT_WAITING";
    case WaitReason::kRunning:
      return "RUNNING";
    case WaitReason::kEnded:
      return "ENDED";
  }
  return "";
}

absl::StatusOr<Explanation> Explain(const State& state, const PresenceMap& presence,
                                    const Policy& policy, SubmissionId id) {
  if (id.number < 1 || id.number > state.last_submission)
    return absl::NotFoundError(absl::StrCat("there is no submission ", id.ToString()));
  const auto it = state.submissions.find(id);
  if (it != state.submissions.end() && !IsTerminal(it->second.state))
    return ExplainOpen(state, presence, policy, it->second);
  Explanation ended{.reason = WaitReason::kEnded, .explanation = "it has ended"};
  if (it == state.submissions.end()) return ended;
  ended.since_us = it->second.ended_at_us;
  ended.explanation =
      absl::StrCat("it has ended ", ToString(it->second.state), ": ", it->second.state_reason);
  return ended;
}

PlacementReply PlanFor(const State& state, const PresenceMap& presence,
                       const SubmissionSpec& spec) {
  PlacementReply reply;
  reply.worker_count_matching = CountPresent(state, spec);
  reply.worker_count_free = Count(state, presence, spec).free;
  reply.run_count_ahead = static_cast<int32_t>(state.queued.size() + state.active.size());
  reply.findings = CheckFeasible(state, spec);
  return reply;
}

}  // namespace assay::core
