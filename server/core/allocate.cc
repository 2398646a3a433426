#include "server/core/allocate.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "server/core/planner.h"

namespace assay::core {
namespace {

constexpr int64_t kRetryPauseMinUs = 5LL * 1'000'000;
constexpr int64_t kRetryPauseMaxUs = 5LL * 60 * 1'000'000;

constexpr int64_t kMinuteUs = 60LL * 1'000'000;
// After a grant, until the last of its workers must have called.
constexpr int64_t kJoinPatienceUs = 5 * kMinuteUs;
// After a request for the nodes of a set, until any will do.
constexpr int64_t kPinPatienceUs = 6 * 60 * kMinuteUs;
// What a batch system is asked for beyond the time of the runs.
constexpr int64_t kSlackOfLeaseUs = 10 * kMinuteUs;
constexpr int64_t kSlackOfRunUs = 3 * kMinuteUs;
// A run of which nothing is known, and how much longer than expected one may take.
constexpr int64_t kRunEstimateUs = 30 * kMinuteUs;
constexpr double kRunMargin = 1.5;
constexpr double kPastRunMargin = 1.2;

bool IsGranted(const Allocation& allocation, const std::string& worker) {
  return std::find(allocation.workers.begin(), allocation.workers.end(), worker) !=
         allocation.workers.end();
}

// The allocation that has not ended and that was granted the worker; nullptr: none.
const Allocation* FindGrant(const State& state, const std::string& worker) {
  for (const auto& [id, allocation] : state.allocations)
    if (allocation.state != AllocationState::kEnded && IsGranted(allocation, worker))
      return &allocation;
  return nullptr;
}

// The allocation of which the worker says that it is.
std::optional<AllocationId> ClaimOf(const WorkerDescription& description) {
  const auto it = description.labels.find(std::string(kAllocationLabel));
  if (it == description.labels.end()) return std::nullopt;
  const absl::StatusOr<AllocationId> id = ParseAllocationId(it->second);
  if (!id.ok()) return std::nullopt;  // a label of the operator's own
  return *id;
}

bool IsOver(const State& state, AllocationId id) {
  const auto it = state.allocations.find(id);
  return it == state.allocations.end() || it->second.state == AllocationState::kEnded;
}

// The serving allocation of workers that come by themselves; none: there is none.
AllocationId FindAttached(const State& state) {
  for (const auto& [id, allocation] : state.allocations)
    if (allocation.spec.launcher == kAttachLauncher && IsServing(allocation.state)) return id;
  return {};
}

// True if all workers that were granted have called.
bool IsComplete(const State& state, const Allocation& allocation) {
  return std::all_of(allocation.workers.begin(), allocation.workers.end(),
                     [&](const std::string& name) {
                       const auto it = state.workers.find(name);
                       return it != state.workers.end() && it->second.allocation == allocation.id &&
                              it->second.state != WorkerState::kGone;
                     });
}

// "a12-1 (n1)": the workers of the allocation that have not called.
std::string Absent(const State& state, const Allocation& allocation) {
  std::vector<std::string> absent;
  for (size_t i = 0; i < allocation.workers.size(); ++i) {
    const std::string& name = allocation.workers[i];
    const auto it = state.workers.find(name);
    if (it != state.workers.end() && it->second.allocation == allocation.id) continue;
    absent.push_back(
        i < allocation.hosts.size() ? absl::StrCat(name, " (", allocation.hosts[i], ")") : name);
  }
  return absl::StrJoin(absent, ", ");
}

bool IsTraining(const State& state, AllocationId allocation) {
  return std::any_of(state.active.begin(), state.active.end(), [&](RunId id) {
    const Run& run = state.runs.at(id);
    return run.allocation == allocation && run.state != RunState::kUploading;
  });
}

// Why an allocation that the scheduler has asked for, for the runs of `submission` alone, cannot
// serve them; empty: it can.
std::string ReasonNotToServe(const State& state, const Allocation& allocation,
                             const Submission& submission, int64_t now_us) {
  if (allocation.state == AllocationState::kRequested && !allocation.spec.wanted_hosts.empty() &&
      now_us >= allocation.created_at_us + kPinPatienceUs)
    return absl::StrCat("the nodes of its set have not come within ",
                        kPinPatienceUs / kMinuteUs / 60, " h");
  if (allocation.state == AllocationState::kGranted &&
      now_us >= allocation.granted_at_us + kJoinPatienceUs)
    return absl::StrCat("did not call within ", kJoinPatienceUs / kMinuteUs,
                        " min: ", Absent(state, allocation));
  if (allocation.state != AllocationState::kActive || IsTraining(state, allocation.id)) return "";
  if (std::ssize(allocation.workers) < NodesAtOnce(submission.spec))
    return absl::StrCat("only ", allocation.workers.size(), " of ", NodesAtOnce(submission.spec),
                        " nodes are left");
  const int64_t need_us = RunNeedUs(state, submission);
  if (allocation.deadline_us == 0 || now_us + need_us <= allocation.deadline_us) return "";
  return absl::StrCat("too little time is left for another run, which may take ",
                      need_us / kMinuteUs, " min");
}

// Why an allocation that serves shall be released now; empty: it shall not.
std::string ReasonToRelease(const State& state, const Allocation& allocation, int64_t now_us) {
  if (allocation.deadline_us != 0 && now_us >= allocation.deadline_us)
    return "its deadline has come";
  const SubmissionId submission = allocation.spec.submission;
  if (submission.is_none()) return "";
  const auto it = state.submissions.find(submission);
  if (it == state.submissions.end() || IsTerminal(it->second.state))
    return absl::StrCat(submission.ToString(), " has ended");
  if (allocation.requested_by != kCoordinator) return "";
  return ReasonNotToServe(state, allocation, it->second, now_us);
}

// Fails what trains on the nodes of the allocation and has not failed by `events`.
void FailRuns(const State& state, const Allocation& allocation, const std::string& reason,
              std::vector<Event>* events) {
  for (const RunId id : state.active) {
    const Run& run = state.runs.at(id);
    const bool is_failed = std::any_of(events->begin(), events->end(), [id](const Event& event) {
      const auto* failed = std::get_if<RunFailed>(&event);
      return failed != nullptr && failed->run == id;
    });
    if (run.allocation == allocation.id && run.state != RunState::kUploading && !is_failed)
      events->push_back(RunFailed{.run = id, .reason = reason});
  }
}

void Release(const State& state, const Allocation& allocation, const std::string& reason,
             std::vector<Event>* events) {
  events->push_back(AllocationReleasing{.allocation = allocation.id, .reason = reason});
  FailRuns(state, allocation, absl::StrCat("allocation ", allocation.id.ToString(), ": ", reason),
           events);
}

int32_t CountOf(const State& state, const std::string& launcher) {
  return static_cast<int32_t>(
      std::count_if(state.allocations.begin(), state.allocations.end(), [&](const auto& entry) {
        return entry.second.spec.launcher == launcher &&
               entry.second.state != AllocationState::kEnded;
      }));
}

// True if an allocation for its runs alone exists, in whatever state.
bool HasOwn(const State& state, SubmissionId submission) {
  return std::any_of(state.allocations.begin(), state.allocations.end(), [&](const auto& entry) {
    return entry.second.spec.submission == submission &&
           entry.second.state != AllocationState::kEnded;
  });
}

// True if nodes that the submission may use are on their way.
bool IsAwaited(const State& state, SubmissionId submission, int32_t node_count) {
  return std::any_of(state.allocations.begin(), state.allocations.end(), [&](const auto& entry) {
    const Allocation& allocation = entry.second;
    const SubmissionId owner = allocation.spec.submission;
    return (allocation.state == AllocationState::kRequested ||
            allocation.state == AllocationState::kGranted) &&
           allocation.spec.node_count >= node_count && (owner.is_none() || owner == submission);
  });
}

}  // namespace

int64_t RunNeedUs(const State& state, const Submission& submission) {
  int64_t slowest_us = 0;
  for (const RunId id : submission.runs) {
    const Run& run = state.runs.at(id);
    if (run.state == RunState::kSucceeded)
      slowest_us = std::max(slowest_us, run.ended_at_us - run.assigned_at_us);
  }
  const double estimate_us = slowest_us > 0 ? kPastRunMargin * static_cast<double>(slowest_us)
                                            : static_cast<double>(kRunEstimateUs);
  return static_cast<int64_t>(kRunMargin * estimate_us) + kSlackOfRunUs;
}

int64_t LeaseNeedUs(const State& state, const Submission& submission) {
  const auto left =
      std::count_if(submission.runs.begin(), submission.runs.end(),
                    [&state](RunId id) { return state.runs.at(id).state == RunState::kQueued; });
  const int64_t turns = IsThroughput(submission.spec) ? 1 : std::max<int64_t>(left, 1);
  return kSlackOfLeaseUs + turns * RunNeedUs(state, submission);
}

bool FitsLease(const State& state, const Submission& submission, const LauncherStarted& launcher) {
  return launcher.lifetime_us_max == 0 ||
         kSlackOfLeaseUs + RunNeedUs(state, submission) <= launcher.lifetime_us_max;
}

int64_t RetryPauseUs(int32_t failure_count) {
  const int32_t doublings = std::clamp(failure_count - 1, 0, 10);
  return std::min(kRetryPauseMinUs << doublings, kRetryPauseMaxUs);
}

absl::Status CheckLease(const State& state, const Synchronize& call) {
  const std::optional<AllocationId> claim = ClaimOf(call.description);
  if (!claim.has_value() || !IsOver(state, *claim) || FindGrant(state, call.worker) != nullptr)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("allocation ", claim->ToString(), " of worker ", call.worker,
                   " has ended: stop its agent, or start it without the label ", kAllocationLabel));
}

std::vector<Event> EndAllocation(const State& state, const Allocation& allocation,
                                 const std::string& reason) {
  std::vector<Event> events;
  const std::string why =
      absl::StrCat("allocation ", allocation.id.ToString(), " has ended: ", reason);
  for (const auto& [name, worker] : state.workers) {
    if (worker.allocation != allocation.id) continue;
    Lose(state, worker, why, &events);
    events.push_back(WorkerStateChanged{.worker = name,
                                        .state = WorkerState::kGone,
                                        .reason = why,
                                        .is_drain_requested = worker.is_drain_requested});
  }
  FailRuns(state, allocation, why, &events);
  const auto it = state.submissions.find(allocation.spec.submission);
  const bool is_failed_lease = it != state.submissions.end() && !IsTerminal(it->second.state) &&
                               allocation.requested_by == kCoordinator &&
                               allocation.activated_at_us == 0;
  events.push_back(AllocationEnded{.allocation = allocation.id,
                                   .reason = reason,
                                   .submission = is_failed_lease ? it->first : SubmissionId{}});
  return events;
}

std::vector<Event> AssignWorkers(const State& state) {
  std::vector<Event> events;
  AllocationId attached = FindAttached(state);
  const bool is_any_incomplete =
      std::any_of(state.allocations.begin(), state.allocations.end(), [](const auto& entry) {
        return entry.second.state == AllocationState::kGranted && !entry.second.workers.empty();
      });
  for (const auto& [name, worker] : state.workers) {
    if (worker.state == WorkerState::kGone) continue;
    if (!worker.allocation.is_none()) {
      // One that had come by itself, or seemed to, before its grant was known.
      const bool may_move =
          is_any_incomplete && worker.allocation == attached && worker.run.is_none();
      const Allocation* const granted = may_move ? FindGrant(state, name) : nullptr;
      if (granted != nullptr)
        events.push_back(WorkerJoined{.worker = name, .allocation = granted->id});
      continue;
    }
    if (const Allocation* granted = FindGrant(state, name); granted != nullptr) {
      events.push_back(WorkerJoined{.worker = name, .allocation = granted->id});
      continue;
    }
    // Its grant is on its way.
    const std::optional<AllocationId> claim = ClaimOf(worker.description);
    if (claim.has_value() && !IsOver(state, *claim)) continue;
    if (attached.is_none()) {
      attached = AllocationId{state.last_allocation + 1};
      events.push_back(
          AllocationRequested{.allocation = attached,
                              .spec = {.launcher = std::string(kAttachLauncher)},
                              .reason = absl::StrCat("worker ", name, " came by itself")});
      events.push_back(AllocationGranted{.allocation = attached});
    }
    events.push_back(WorkerJoined{.worker = name, .allocation = attached});
  }
  return events;
}

std::vector<Event> AdvanceAllocations(const State& state, const std::set<AllocationId>& unheard,
                                      int64_t now_us) {
  std::vector<Event> events;
  std::set<AllocationId> populated;
  for (const auto& [name, worker] : state.workers)
    populated.insert(worker.allocation);
  for (const auto& [id, allocation] : state.allocations) {
    if (allocation.state == AllocationState::kReleasing ||
        allocation.state == AllocationState::kEnded)
      continue;
    if (allocation.spec.launcher == kAttachLauncher && !populated.contains(id)) {
      events.push_back(
          AllocationEnded{.allocation = id, .reason = "none of its workers is known any more"});
    } else if (const std::string reason =
                   unheard.contains(id) ? "" : ReasonToRelease(state, allocation, now_us);
               !reason.empty()) {
      Release(state, allocation, reason, &events);
    } else if (allocation.state == AllocationState::kGranted && IsComplete(state, allocation)) {
      events.push_back(AllocationActivated{.allocation = id});
    }
  }
  return events;
}

namespace {

// The nodes on which the runs of the set were so far, where a batch system knows them; empty: any
// will do, as when an allocation of these did not come to serve.
std::vector<std::string> HostsOfSet(const State& state, const Submission& submission) {
  const Run* last = nullptr;
  for (const RunId id : submission.runs) {
    const Run& run = state.runs.at(id);
    const bool is_later = last == nullptr || run.assigned_at_us >= last->assigned_at_us;
    if (!run.node_names.empty() && is_later) last = &run;
  }
  if (last == nullptr || submission.lease_failure_count > 0) return {};
  return last->node_names;
}

// One allocation for each submission that waits and has none.
std::vector<Event> AskForEach(const State& state, const PresenceMap& presence,
                              const LauncherStarted& launcher) {
  std::vector<Event> events;
  std::set<SubmissionId> seen;
  int32_t left = launcher.allocation_count_max - CountOf(state, launcher.launcher);
  for (const RunId id : state.queued) {
    if (left <= 0) break;
    const Submission& submission = state.submissions.at(state.runs.at(id).submission);
    const SubmissionSpec& spec = submission.spec;
    const auto node_count = static_cast<int32_t>(NodesAtOnce(spec));
    if (!seen.insert(submission.id).second || node_count > launcher.node_count_max ||
        submission.lease_failure_count >= kLeaseFailureCountMax || HasOwn(state, submission.id) ||
        !FitsLease(state, submission, launcher) ||
        BestCapacity(state, presence, spec, submission.id).present_count >= node_count)
      continue;
    const int64_t need_us = LeaseNeedUs(state, submission);
    const int64_t lifetime_us =
        launcher.lifetime_us_max == 0 ? need_us : std::min(need_us, launcher.lifetime_us_max);
    events.push_back(AllocationRequested{
        .allocation = AllocationId{state.last_allocation + 1 + std::ssize(events)},
        .spec = {.launcher = launcher.launcher,
                 .node_count = std::max(node_count, launcher.node_count_min),
                 .submission = submission.id,
                 .lifetime_us = lifetime_us,
                 .wanted_hosts = HostsOfSet(state, submission)},
        .reason = absl::StrCat("run ", id.ToString(), " waits for ", node_count, " nodes")});
    --left;
  }
  return events;
}

}  // namespace

std::vector<Event> AskForNodes(const State& state, const PresenceMap& presence,
                               const LauncherStarted& launcher) {
  if (launcher.allocation_count_max <= CountOf(state, launcher.launcher)) return {};
  if (launcher.is_per_submission) return AskForEach(state, presence, launcher);
  for (const RunId id : state.queued) {
    const Run& run = state.runs.at(id);
    const SubmissionSpec& spec = state.submissions.at(run.submission).spec;
    const auto node_count = static_cast<int32_t>(NodesAtOnce(spec));
    if (node_count > launcher.node_count_max || IsAwaited(state, run.submission, node_count) ||
        BestCapacity(state, presence, spec, run.submission).present_count >= node_count)
      continue;
    return {AllocationRequested{
        .allocation = AllocationId{state.last_allocation + 1},
        .spec = {.launcher = launcher.launcher,
                 .node_count = std::max(node_count, launcher.node_count_min)},
        .reason = absl::StrCat("run ", id.ToString(), " waits for ", node_count, " nodes")}};
  }
  return {};
}

bool IsReleaseDue(const State& state, const Allocation& allocation, int64_t now_us) {
  if (allocation.state != AllocationState::kReleasing) return false;
  if (allocation.deadline_us != 0 && now_us >= allocation.deadline_us + kReleaseGraceUs)
    return true;
  return std::none_of(state.workers.begin(), state.workers.end(), [&](const auto& entry) {
    return entry.second.allocation == allocation.id && !entry.second.run.is_none();
  });
}

}  // namespace assay::core
