#include "server/core/allocate.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "server/core/lease.h"
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

// The workers of the allocation that have not called, by their places in it.
std::vector<size_t> AbsentOf(const State& state, const Allocation& allocation) {
  std::vector<size_t> absent;
  for (size_t i = 0; i < allocation.workers.size(); ++i) {
    const auto it = state.workers.find(allocation.workers[i]);
    if (it == state.workers.end() || it->second.allocation != allocation.id) absent.push_back(i);
  }
  return absent;
}

// "a12-1 (n1)"
std::string DescribeAbsent(const State& state, const Allocation& allocation) {
  std::vector<std::string> absent;
  for (const size_t i : AbsentOf(state, allocation))
    absent.push_back(i < allocation.hosts.size()
                         ? absl::StrCat(allocation.workers[i], " (", allocation.hosts[i], ")")
                         : allocation.workers[i]);
  return absl::StrJoin(absent, ", ");
}

// True if it has had its time to become complete, and is not.
bool IsLate(const Allocation& allocation, int64_t now_us) {
  return allocation.state == AllocationState::kGranted &&
         now_us >= allocation.granted_at_us + kJoinPatienceUs;
}

// The nodes of a late allocation whose agents have not come.
std::vector<std::string> AbsentHosts(const State& state, const Allocation& allocation,
                                     int64_t now_us) {
  std::vector<std::string> hosts;
  if (!IsLate(allocation, now_us)) return hosts;
  for (const size_t i : AbsentOf(state, allocation))
    if (i < allocation.hosts.size()) hosts.push_back(allocation.hosts[i]);
  return hosts;
}

// Workers that have failed a pre-flight and are drained for it.
int64_t CountUnfit(const State& state, const Allocation& allocation) {
  return std::count_if(allocation.workers.begin(), allocation.workers.end(),
                       [&](const std::string& name) {
                         const auto it = state.workers.find(name);
                         return it != state.workers.end() && it->second.is_drain_requested &&
                                it->second.preflight.has_value() &&
                                it->second.preflight->submission == allocation.spec.submission &&
                                it->second.preflight->state == PreflightState::kFailed;
                       });
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
  if (IsLate(allocation, now_us))
    return absl::StrCat("did not call within ", kJoinPatienceUs / kMinuteUs,
                        " min: ", DescribeAbsent(state, allocation));
  if (allocation.state != AllocationState::kActive || IsTraining(state, allocation.id)) return "";
  if (std::ssize(allocation.workers) < NodesAtOnce(submission.spec))
    return absl::StrCat("only ", allocation.workers.size(), " of ", NodesAtOnce(submission.spec),
                        " nodes are left");
  if (const int64_t unfit = CountUnfit(state, allocation);
      unfit > 0 && std::ssize(allocation.workers) - unfit < NodesAtOnce(submission.spec))
    return submission.preflight_error;
  const int64_t need_us = RunNeedUs(state, submission);
  if (allocation.deadline_us == 0 || now_us + need_us <= allocation.deadline_us) return "";
  return absl::StrCat("too little time is left for another run, which may take ",
                      need_us / kMinuteUs, " min");
}

// "a12-1 has left", of an allocation whose workers all had called; empty: none has.
std::string WhoHasLeft(const State& state, const Allocation& allocation) {
  if (allocation.state != AllocationState::kActive) return "";
  for (const std::string& name : allocation.workers) {
    const auto it = state.workers.find(name);
    if (it == state.workers.end() || it->second.state == WorkerState::kGone ||
        it->second.state == WorkerState::kLost)
      return absl::StrCat(name, " has left");
  }
  return "";
}

// An end that was brought forward is told as such: preemption and operators work by it.
std::string DescribeDeadline(const Allocation& allocation) {
  const int64_t early_us = allocation.first_deadline_us - allocation.deadline_us;
  if (early_us < kMinuteUs) return "its deadline has come";
  return absl::StrCat("its deadline has come, brought forward by ", early_us / kMinuteUs,
                      " min since the nodes were granted");
}

// Why an allocation that serves shall be released now; empty: it shall not.
std::string ReasonToRelease(const State& state, const Allocation& allocation, int64_t now_us) {
  if (allocation.deadline_us != 0 && now_us >= allocation.deadline_us)
    return DescribeDeadline(allocation);
  const SubmissionId submission = allocation.spec.submission;
  if (submission.is_none()) return "";
  const auto it = state.submissions.find(submission);
  if (it == state.submissions.end() || IsTerminal(it->second.state))
    return absl::StrCat(submission.ToString(), " has ended");
  if (allocation.spec.launcher == kSubmitterLauncher) {
    if (std::string left = WhoHasLeft(state, allocation); !left.empty()) return left;
  } else if (allocation.requested_by != kCoordinator) {
    return "";
  }
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
             int64_t now_us, std::vector<Event>* events) {
  events->push_back(AllocationReleasing{.allocation = allocation.id,
                                        .reason = reason,
                                        .absent_hosts = AbsentHosts(state, allocation, now_us)});
  FailRuns(state, allocation, absl::StrCat("allocation ", allocation.id.ToString(), ": ", reason),
           events);
}

}  // namespace

int64_t RetryPauseUs(int32_t failure_count) {
  const int32_t doublings = std::clamp(failure_count - 1, 0, 10);
  return std::min(kRetryPauseMinUs << doublings, kRetryPauseMaxUs);
}

absl::Status CheckLease(const State& state, const Synchronize& call) {
  if (absl::StartsWith(call.worker, kSubmitterWorkerPrefix) &&
      FindGrant(state, call.worker) == nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat("the allocation of worker ", call.worker, " has ended: stop its agent"));
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
      if (granted != nullptr && granted->id != attached)
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
    if (allocation.spec.launcher == kSubmitterLauncher && IsReleaseDue(state, allocation, now_us)) {
      // Nobody has to give its nodes back: their agents leave when they hear of its end.
      std::vector<Event> end = EndAllocation(state, allocation, allocation.state_reason);
      std::move(end.begin(), end.end(), std::back_inserter(events));
    }
    if (allocation.state == AllocationState::kReleasing ||
        allocation.state == AllocationState::kEnded)
      continue;
    if (allocation.spec.launcher == kAttachLauncher && !populated.contains(id)) {
      events.push_back(
          AllocationEnded{.allocation = id, .reason = "none of its workers is known any more"});
    } else if (const std::string reason =
                   unheard.contains(id) ? "" : ReasonToRelease(state, allocation, now_us);
               !reason.empty()) {
      Release(state, allocation, reason, now_us, &events);
    } else if (allocation.state == AllocationState::kGranted && IsComplete(state, allocation)) {
      events.push_back(AllocationActivated{.allocation = id});
    }
  }
  return events;
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
