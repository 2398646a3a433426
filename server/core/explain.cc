#include "server/core/explain.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "common/rules/spec_rules.h"
#include "common/status.h"
#include "server/core/allocate.h"
#include "server/core/census.h"
#include "server/core/decide.h"
#include "server/core/judgement.h"
#include "server/core/lease.h"
#include "server/core/node_checks.h"
#include "server/core/planner.h"

namespace assay::core {
namespace {

constexpr size_t kDrainedNamed = 5;

std::string DescribeWish(const SubmissionSpec& spec) {
  const int64_t node_count = NodesAtOnce(spec);
  std::string text = absl::StrCat(node_count, node_count == 1 ? " worker" : " workers");
  const std::string& backend = BackendOf(spec.workload);
  if (!backend.empty()) absl::StrAppend(&text, " with backend ", backend);
  if (!spec.worker_labels.empty())
    absl::StrAppend(&text, " labelled ",
                    absl::StrJoin(spec.worker_labels, ", ", absl::PairFormatter("=")));
  return text;
}

// What the planner makes of a queued run.
Placement PlacementOf(const State& state, const PresenceMap& presence, const Policy& policy,
                      RunId run) {
  Planner planner(state, presence, policy);
  for (const RunId earlier : state.queued) {
    if (earlier >= run) break;
    planner.Next(state.runs.at(earlier));
  }
  return planner.Next(state.runs.at(run));
}

// The nodes that are on their way to the submission, and how that goes; nullptr: none are.
const Allocation* FindAwaited(const State& state, SubmissionId submission) {
  const Allocation* found = nullptr;
  for (const auto& [id, allocation] : state.allocations) {
    // One that was there may fail to come back after a restart.
    const bool is_coming =
        allocation.state == AllocationState::kRequested ||
        allocation.state == AllocationState::kGranted ||
        (allocation.state == AllocationState::kActive && allocation.failure_count > 0);
    const SubmissionId owner = allocation.spec.submission;
    if (is_coming && allocation.spec.launcher != kAttachLauncher &&
        (owner.is_none() || owner == submission))
      found = &allocation;
  }
  return found;
}

// What the launcher says of an allocation that it waits for.
std::string DescribeWait(const LeaseWait& wait, int64_t since_us, int64_t now_us) {
  constexpr int64_t kMinuteUs = 60LL * 1'000'000;
  std::string text =
      absl::StrCat("waiting ", (now_us - since_us) / kMinuteUs, " min for ", wait.words);
  if (wait.expected_start_us > 0) {
    const absl::Time start = absl::FromUnixMicros(wait.expected_start_us);
    const bool is_soon = wait.expected_start_us - now_us < 12 * 60 * kMinuteUs;
    absl::StrAppend(
        &text, ", expected start ",
        absl::FormatTime(is_soon ? "%H:%M UTC" : "%Y-%m-%d %H:%M UTC", start, absl::UTCTimeZone()));
  }
  if (!wait.silence.empty())
    absl::StrAppend(&text, "; ", wait.silence, " for ", (now_us - wait.silent_since_us) / kMinuteUs,
                    " min");
  return text;
}

Explanation ExplainAwaited(const State& state, const LeaseWaits& waits,
                           const Allocation& allocation, const std::string& wish, int64_t now_us) {
  Explanation answer{.reason = WaitReason::kAllocationQueued, .since_us = allocation.created_at_us};
  const std::string name = absl::StrCat("allocation ", allocation.id.ToString(), " of launcher \"",
                                        allocation.spec.launcher, "\"");
  if (allocation.failure_count > 0) {
    answer.reason = WaitReason::kAllocationRefused;
    const int64_t pause_us = std::max<int64_t>(allocation.retry_at_us - now_us, 0);
    answer.explanation = absl::StrCat(
        "needs ", wish, "; ", name, " could not be had in ", allocation.failure_count,
        allocation.failure_count == 1 ? " try" : " tries", ", the last: ", allocation.last_error,
        "; it is asked for again in ", pause_us / 1'000'000, " s");
    answer.remedy = absl::StrCat(
        "mend what the launcher says, or release the allocation: assay "
        "allocation release ",
        allocation.id.ToString());
    return answer;
  }
  const auto wait = waits.find(allocation.id);
  if (allocation.state == AllocationState::kRequested && wait != waits.end()) {
    answer.explanation = DescribeWait(wait->second, allocation.created_at_us, now_us);
    answer.remedy = absl::StrCat(
        "wait for it, ask the site's operators what the batch system's "
        "word means, or look at it: assay allocation show ",
        allocation.id.ToString());
    return answer;
  }
  std::vector<std::string> missing;
  for (const std::string& worker : allocation.workers) {
    const auto it = state.workers.find(worker);
    if (it == state.workers.end() || it->second.allocation != allocation.id)
      missing.push_back(worker);
  }
  answer.explanation =
      allocation.state == AllocationState::kRequested
          ? absl::StrCat("needs ", wish, "; ", name, " is asked for and not granted yet")
          : absl::StrCat("needs ", wish, "; ", name,
                         " is granted, and has not called yet: ", absl::StrJoin(missing, ", "));
  answer.remedy =
      absl::StrCat("wait for it, or look at it: assay allocation show ", allocation.id.ToString());
  return answer;
}

// "launcher "slurm", profile gpu,"
std::string NameOf(const LauncherStarted& launcher, const SubmissionSpec& spec) {
  return absl::StrCat("launcher \"", launcher.launcher, "\"",
                      spec.fleet.empty() ? "" : absl::StrCat(", profile ", spec.fleet, ","));
}

// Why nothing is asked of the submission's profile; empty: it would be.
std::optional<Explanation> ExplainProfile(const Known& known, const Submission& submission) {
  const SubmissionSpec& spec = submission.spec;
  Explanation answer{.reason = WaitReason::kAllocationRefused};
  if (!FindProfile(known.launcher, spec).has_value()) {
    answer.explanation = absl::StrCat("launcher \"", known.launcher.launcher, "\" has no profile ",
                                      spec.fleet, " any more");
    answer.remedy = "ask an operator to configure it again, or cancel and choose another";
    return answer;
  }
  const ProfileHealth::Failures* pause = known.health.FindPause(spec.fleet, known.now_us);
  if (pause == nullptr) return std::nullopt;
  answer.explanation = absl::StrCat(
      NameOf(known.launcher, spec), " is paused for an hour: its last ", pause->count,
      " allocations ended before any run, ", pause->last.ToString(), ": ", pause->reason);
  answer.remedy = absl::StrCat(
      "wait, or mend that and have an operator ask at once: assay allocation request --entry ",
      submission.id.ToString(), " --nodes ", NodesAtOnce(spec));
  return answer;
}

// Why the launcher is not asked for nodes of the submission's own; empty: it would be.
std::optional<Explanation> ExplainNotAsked(const Known& known, const Submission& submission) {
  const auto& [state, presence, policy, launcher, waits, health, now_us] = known;
  if (!launcher.is_per_submission) return std::nullopt;
  Explanation answer{.reason = WaitReason::kAllocationRefused};
  if (submission.lease_failure_count >= kLeaseFailureCountMax) {
    answer.explanation = absl::StrCat(submission.lease_failure_count,
                                      " allocations for it ended before all nodes had come, the "
                                      "last: ",
                                      submission.lease_error);
    answer.remedy = absl::StrCat(
        "mend that and have an operator ask: assay allocation request "
        "--entry ",
        submission.id.ToString(), " --nodes ", NodesAtOnce(submission.spec));
    return answer;
  }
  if (std::optional<Explanation> why = ExplainProfile(known, submission); why.has_value())
    return why;
  constexpr int64_t kMinuteUs = 60LL * 1'000'000;
  const LaunchProfile profile = *FindProfile(launcher, submission.spec);
  const std::string name = NameOf(launcher, submission.spec);
  if (!FitsLease(state, submission, profile)) {
    answer.explanation = absl::StrCat(
        "a run may take ", RunNeedUs(state, submission) / kMinuteUs, " min, and ", name,
        " gives nodes for ", profile.lifetime_us_max / kMinuteUs, " min, of which 10 are spare");
    answer.remedy = "ask an operator for a longer limit, or cancel and ask for less";
    return answer;
  }
  if (NodesAtOnce(submission.spec) > profile.node_count_max) {
    answer.explanation = absl::StrCat("needs ", NodesAtOnce(submission.spec), " nodes, and ", name,
                                      " gives ", profile.node_count_max);
    answer.remedy = "ask an operator for a higher limit, or cancel and ask for less";
    return answer;
  }
  return std::nullopt;
}

// "1 is", "2 are".
std::string CountIs(int32_t count) {
  return absl::StrCat(count, count == 1 ? " is" : " are");
}

// Nodes that an operator has taken out would do. Who may see them is told which, and why.
Explanation ExplainDrained(const Census& census, const Submission& submission,
                           const VisibleTo& viewer) {
  Explanation answer{.reason = WaitReason::kWorkersDrained};
  answer.explanation =
      absl::StrCat("needs ", DescribeWish(submission.spec), "; of the ", census.matching,
                   " that match, ", CountIs(census.draining), " drained");
  if (census.silent > 0)
    absl::StrAppend(&answer.explanation, " and ", CountIs(census.silent), " silent");
  answer.remedy = "ask an operator to let drained workers back, or cancel and ask for less";
  for (const Worker* const worker : census.drained)
    answer.since_us = std::max(answer.since_us, worker->state_since_us);
  if (!viewer.sees_all) {
    // It is about the submitter's own set.
    if (!submission.preflight_error.empty())
      absl::StrAppend(&answer.explanation, "; ", submission.preflight_error);
    return answer;
  }
  std::vector<std::string> texts;
  for (const Worker* const worker : census.drained) {
    if (texts.size() == kDrainedNamed) break;
    texts.push_back(worker->state_reason.empty()
                        ? worker->name
                        : absl::StrCat(worker->name, " (", worker->state_reason, ")"));
  }
  const bool is_all = texts.size() == census.drained.size();
  absl::StrAppend(&answer.explanation, ": ", absl::StrJoin(texts, ", "), is_all ? "" : ", ...");
  answer.remedy = absl::StrCat("let them back, as with 'assay node resume ",
                               census.drained.front()->name, "', or cancel and ask for less");
  return answer;
}

Explanation ExplainTooFew(const Census& census, const Submission& submission,
                          const VisibleTo& viewer) {
  const SubmissionSpec& spec = submission.spec;
  Explanation answer;
  const std::string wish = DescribeWish(spec);
  if (census.matching - census.draining >= NodesAtOnce(spec)) {
    answer.reason = WaitReason::kWorkersLost;
    answer.since_us = census.silent_since_us;
    answer.explanation = absl::StrCat("needs ", wish, "; of the ", census.matching, " that match, ",
                                      census.silent, " are silent");
    answer.remedy = "bring the silent workers back, or add others";
    return answer;
  }
  if (census.matching >= NodesAtOnce(spec) && census.draining > 0)
    return ExplainDrained(census, submission, viewer);
  answer.reason = WaitReason::kLabels;
  answer.explanation = absl::StrCat("needs ", wish, "; ", census.matching, " match and ",
                                    census.draining, " of them are draining");
  if (census.elsewhere > 0)
    absl::StrAppend(&answer.explanation, "; these are of allocation ", census.allocation.ToString(),
                    ", and ", census.elsewhere,
                    " more match in others, but a run's nodes come from one");
  if (!submission.preflight_error.empty())
    absl::StrAppend(&answer.explanation, "; ", submission.preflight_error);
  answer.remedy = absl::StrCat("add ", NodesAtOnce(spec) - census.matching + census.draining,
                               " workers that match, or cancel and ask for less");
  return answer;
}

Explanation ExplainChecks(const State& state, const Submission& submission, int64_t now_us) {
  Explanation answer{.reason = WaitReason::kPreflight};
  std::vector<std::string> nodes;
  int64_t deadline_us = 0;
  for (const auto& [name, worker] : state.workers) {
    const Preflight* const running = FindRunning(worker);
    if (running == nullptr || running->submission != submission.id) continue;
    nodes.push_back(NodeName(worker));
    answer.since_us = std::max(answer.since_us, running->started_at_us);
    deadline_us = std::max(deadline_us, running->deadline_us);
  }
  if (nodes.empty()) {
    answer.explanation = "its nodes are about to be checked";
    return answer;
  }
  answer.explanation = absl::StrCat(
      "pre-flight of ", nodes.size() == 1 ? "node " : "nodes ", absl::StrJoin(nodes, ", "),
      " goes on, for at most ", std::max<int64_t>(deadline_us - now_us, 0) / 1'000'000, " s more");
  if (!submission.preflight_error.empty())
    absl::StrAppend(&answer.explanation, "; ", submission.preflight_error);
  answer.remedy = "wait for it; the numbers are in: assay node show NODE";
  return answer;
}

bool SeesRun(const State& state, const VisibleTo& viewer, RunId run) {
  const Submission& submission = state.submissions.at(state.runs.at(run).submission);
  return MaySee(viewer, DisclosureOf(submission));
}

Explanation ExplainQueued(const Known& known, const Run& run, const VisibleTo& viewer) {
  const auto& [state, presence, policy, launcher, waits, health, now_us] = known;
  const SubmissionSpec& spec = state.submissions.at(run.submission).spec;
  const Census census = CountWorkers(state, presence, spec, run.submission);
  const Placement placement = PlacementOf(state, presence, policy, run.id);
  const std::string numbers = absl::StrCat("needs ", DescribeWish(spec), "; ", census.free,
                                           " of the ", census.matching, " that match are free");
  // A silent worker still counts as there until it is lost.
  if (placement.verdict == Placement::Verdict::kTooFew || census.usable() < NodesAtOnce(spec)) {
    if (const Allocation* awaited = FindAwaited(state, run.submission); awaited != nullptr)
      return ExplainAwaited(state, waits, *awaited, DescribeWish(spec), now_us);
    return ExplainNotAsked(known, state.submissions.at(run.submission))
        .value_or(ExplainTooFew(census, state.submissions.at(run.submission), viewer));
  }
  const std::string shared = placement.set_nodes.empty()
                                 ? ""
                                 : absl::StrCat("; the runs of a set share their nodes, here ",
                                                absl::StrJoin(placement.set_nodes, ", "));
  Explanation answer;
  switch (placement.verdict) {
    case Placement::Verdict::kLimited:
      answer.reason = WaitReason::kOrganizationLimit;
      answer.explanation = absl::StrCat(
          "organisation ", spec.organization, " has ", CountActiveRuns(state)[spec.organization],
          " runs on workers and may have ", RunLimit(policy, spec.organization));
      answer.remedy = "wait for one of them to end, or ask an operator to raise the limit";
      return answer;
    case Placement::Verdict::kBehind:
      answer.reason = WaitReason::kPriority;
      answer.explanation = absl::StrCat(numbers, shared,
                                        SeesRun(state, viewer, placement.ahead)
                                            ? absl::StrCat("; run ", placement.ahead.ToString())
                                            : "; another run",
                                        " was there before");
      answer.remedy = shared.empty() ? "wait for the runs before it, or add workers that match"
                                     : "wait for the runs before it";
      return answer;
    case Placement::Verdict::kBusy:
      answer.reason = WaitReason::kResources;
      answer.explanation = absl::StrCat(numbers, shared, "; it is next in line for them");
      answer.remedy = shared.empty()
                          ? "wait for a run to end, or add workers that match"
                          : "wait for a run to end; in the place of a node that shall not be "
                            "waited for comes another once that is drained (assay node drain)";
      return answer;
    case Placement::Verdict::kChecked:
      return ExplainChecks(state, state.submissions.at(run.submission), now_us);
    case Placement::Verdict::kTooFew:
    case Placement::Verdict::kPlaced:
      answer.explanation = absl::StrCat(numbers, "; it is about to be placed");
      return answer;
  }
  return answer;
}

// "; when placed, 2 of the 4 nodes had dataset cosmo32 in the cache"; empty: none had.
std::string DescribeCached(const State& state, const Submission& submission) {
  size_t nodes = 0;
  size_t cached = 0;
  for (const RunId id : submission.runs) {
    if (!state.active.contains(id)) continue;
    nodes += state.runs.at(id).nodes.size();
    cached += state.runs.at(id).cached_workers.size();
  }
  if (cached == 0) return "";
  return absl::StrCat("; when placed, ", cached, " of the ", nodes, nodes == 1 ? " node" : " nodes",
                      " had dataset ", submission.spec.dataset, " in the cache");
}

// Its place among the queued runs that `viewer` sees, from 1.
int32_t PlaceOf(const State& state, const VisibleTo& viewer, RunId run) {
  const auto end = state.queued.find(run);
  const auto ahead = std::count_if(state.queued.begin(), end,
                                   [&](RunId other) { return SeesRun(state, viewer, other); });
  return static_cast<int32_t>(ahead) + 1;
}

Explanation ExplainOpen(const Known& known, const Submission& submission, const VisibleTo& viewer) {
  const State& state = known.state;
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
    answer.explanation =
        absl::StrCat(active, " of its ", submission.spec.run_count, " runs are on workers, ",
                     succeeded, " have succeeded", DescribeCached(state, submission));
  } else if (first_queued.is_none()) {
    answer.explanation = submission.state == SubmissionState::kChecking
                             ? "all runs have ended; its score is being computed"
                             : "a failed run is being stopped on its last workers";
  } else {
    answer = ExplainQueued(known, state.runs.at(first_queued), viewer);
    if (answer.since_us == 0) answer.since_us = state.runs.at(first_queued).created_at_us;
  }
  if (answer.since_us == 0) answer.since_us = submission.created_at_us;
  if (!first_queued.is_none()) answer.queue_position = PlaceOf(state, viewer, first_queued);
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
    case WaitReason::kWorkersDrained:
      return "WORKERS_DRAINED";
    case WaitReason::kAllocationQueued:
      return "ALLOCATION_QUEUED";
    case WaitReason::kAllocationRefused:
      return "ALLOCATION_REFUSED";
    case WaitReason::kPreflight:
      return "PREFLIGHT";
    case WaitReason::kNotWaiting:
      return "NOT_WAITING";
    case WaitReason::kRunning:
      return "RUNNING";
    case WaitReason::kEnded:
      return "ENDED";
  }
  return "";
}

absl::StatusOr<Explanation> Explain(const Known& known, SubmissionId id, const VisibleTo& viewer) {
  ASSIGN_OR_RETURN(const Submission* const submission, FindSubmission(known.state, id));
  if (!IsTerminal(submission->state)) return ExplainOpen(known, *submission, viewer);
  return Explanation{.reason = WaitReason::kEnded,
                     .since_us = submission->ended_at_us,
                     .explanation = absl::StrCat("it has ended ", ToString(submission->state), ": ",
                                                 submission->state_reason)};
}

PlacementReply PlanFor(const State& state, const PresenceMap& presence,
                       const LauncherStarted& launcher, const SubmissionSpec& spec,
                       const VisibleTo& viewer) {
  PlacementReply reply;
  const Capacity capacity = BestCapacity(state, presence, spec, SubmissionId{});
  reply.worker_count_matching = capacity.present_count;
  reply.worker_count_free = capacity.free_count;
  for (const auto* runs : {&state.queued, &state.active})
    for (const RunId run : *runs)
      reply.run_count_ahead += SeesRun(state, viewer, run) ? 1 : 0;
  reply.findings = JudgeSpec(state, launcher, spec);
  reply.lease = PlanLease(state, launcher, spec);
  if (reply.findings.empty() && !reply.lease.has_value() &&
      capacity.present_count < NodesAtOnce(spec)) {
    Finding finding = rules::SpecFinding(
        "R-SPC-006", "node_count",
        absl::StrCat("at most the ", capacity.present_count, " nodes that match"),
        absl::StrCat(NodesAtOnce(spec)));
    finding.severity = Severity::kWarning;
    reply.findings.push_back(std::move(finding));
  }
  return reply;
}

}  // namespace assay::core
