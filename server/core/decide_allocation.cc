// Decisions about leases of nodes: what people ask for, and what the launcher says.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/allocate.h"
#include "server/core/decide.h"

namespace assay::core {
namespace {

constexpr size_t kLabelCountMax = 64;
constexpr int64_t kLifetimeUsMax = 366LL * 24 * 3600 * 1'000'000;

absl::Status CheckLauncher(const State& state, const LauncherStarted& launcher,
                           const AllocationSpec& spec) {
  if (launcher.launcher.empty())
    return absl::UnavailableError("the launcher has not started yet; retry");
  if (launcher.allocation_count_max == 0)
    return absl::FailedPreconditionError(
        absl::StrCat("launcher \"", launcher.launcher,
                     "\" starts no nodes: start assay-worker on them, or configure another"));
  if (!spec.launcher.empty() && spec.launcher != launcher.launcher)
    return absl::InvalidArgumentError(absl::StrCat("launcher: expected \"", launcher.launcher,
                                                   "\", found \"", spec.launcher, "\""));
  int32_t count = 0;
  for (const auto& [id, allocation] : state.allocations)
    if (allocation.spec.launcher == launcher.launcher &&
        allocation.state != AllocationState::kEnded)
      ++count;
  if (count < launcher.allocation_count_max) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("launcher \"", launcher.launcher, "\" has ", count,
                   " allocations and can have no more: release one first (assay allocation list)"));
}

absl::Status CheckSpec(const State& state, const LauncherStarted& launcher,
                       const AllocationSpec& spec) {
  RETURN_IF_ERROR(CheckLauncher(state, launcher, spec));
  if (spec.node_count < 0 || spec.node_count > launcher.node_count_max)
    return absl::InvalidArgumentError(absl::StrCat(
        "node_count: launcher \"", launcher.launcher, "\" gives 1 to ", launcher.node_count_max,
        " nodes (0: as many as possible), not ", spec.node_count));
  if (spec.lifetime_us < 0 || spec.lifetime_us > kLifetimeUsMax)
    return absl::InvalidArgumentError("lifetime: give 0 for none, at most 366 days");
  if (spec.labels.size() > kLabelCountMax)
    return absl::InvalidArgumentError(absl::StrCat("labels: give at most ", kLabelCountMax));
  for (const auto& [name, value] : spec.labels)
    if (name.size() > kTextBytesMax || value.size() > kTextBytesMax)
      return absl::InvalidArgumentError(
          absl::StrCat("labels: a name and a value have at most ", kTextBytesMax, " bytes"));
  if (spec.submission.is_none()) return absl::OkStatus();
  const auto it = state.submissions.find(spec.submission);
  if (it != state.submissions.end() && !IsTerminal(it->second.state)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("there is no submission ", spec.submission.ToString(), " that has not ended"));
}

// The allocation of which a worker that is granted is already; nullptr: all may join.
const Allocation* FindConflict(const State& state, const Allocation& allocation,
                               const LaunchReported& report) {
  for (const auto& [id, other] : state.allocations) {
    if (id == allocation.id || other.state == AllocationState::kEnded) continue;
    for (const std::string& name : report.workers)
      if (std::find(other.workers.begin(), other.workers.end(), name) != other.workers.end())
        return &other;
  }
  return nullptr;
}

Event Failed(const Allocation& allocation, const std::string& error, int64_t now_us) {
  return AllocationLaunchFailed{.allocation = allocation.id,
                                .error = error,
                                .retry_at_us = now_us + RetryPauseUs(allocation.failure_count + 1)};
}

// A grant lets those workers go that it does not name any more.
std::vector<Event> Regrant(const State& state, const Allocation& allocation,
                           const LaunchReported& report, int64_t deadline_us) {
  std::vector<Event> events;
  const auto is_named = [&report](const std::string& name) {
    return std::find(report.workers.begin(), report.workers.end(), name) != report.workers.end();
  };
  for (const auto& [name, worker] : state.workers) {
    if (worker.allocation != allocation.id || is_named(name)) continue;
    const std::string reason =
        absl::StrCat("allocation ", allocation.id.ToString(), " lost the node",
                     report.reason.empty() ? "" : ": ", report.reason.substr(0, kTextBytesMax));
    Lose(state, worker, reason, &events);
    events.push_back(WorkerStateChanged{.worker = name,
                                        .state = WorkerState::kGone,
                                        .reason = reason,
                                        .is_drain_requested = worker.is_drain_requested});
  }
  events.push_back(AllocationGranted{.allocation = allocation.id,
                                     .workers = report.workers,
                                     .deadline_us = deadline_us,
                                     .hosts = report.hosts});
  return events;
}

absl::StatusOr<std::vector<Event>> Grant(const Context& context, const Allocation& allocation,
                                         const LaunchReported& report) {
  for (const std::string& name : report.workers)
    RETURN_IF_ERROR(CheckName("worker", name));
  if (!report.hosts.empty() && report.hosts.size() != report.workers.size())
    return absl::InvalidArgumentError("hosts: give one for each worker, or none");
  if (report.deadline_us < 0 || report.deadline_us > kTimeUsMax)
    return absl::InvalidArgumentError(absl::StrCat("deadline_us is ", report.deadline_us,
                                                   ": give 0 for none, at most ", kTimeUsMax));
  if (allocation.state == AllocationState::kReleasing) return std::vector<Event>{};
  int64_t deadline_us = report.deadline_us;
  if (allocation.spec.lifetime_us > 0) {
    const int64_t since_us =
        allocation.granted_at_us != 0 ? allocation.granted_at_us : context.now_us;
    const int64_t end_us = since_us + allocation.spec.lifetime_us;
    deadline_us = deadline_us == 0 ? end_us : std::min(deadline_us, end_us);
  }
  const bool is_known = allocation.state != AllocationState::kRequested &&
                        allocation.workers == report.workers && allocation.hosts == report.hosts &&
                        allocation.deadline_us == deadline_us && allocation.failure_count == 0;
  if (is_known) return std::vector<Event>{};
  if (const Allocation* other = FindConflict(context.state, allocation, report); other != nullptr)
    return std::vector<Event>{Failed(
        allocation, absl::StrCat("its workers are those of allocation ", other->id.ToString()),
        context.now_us)};
  return Regrant(context.state, allocation, report, deadline_us);
}

// The node is one of the job that is the allocation's, is the worker's, and has not enrolled.
absl::Status CheckNode(const Allocation& allocation, const EnrolNode& command) {
  const std::string id = allocation.id.ToString();
  if (allocation.job.empty() || command.job != allocation.job)
    return absl::PermissionDeniedError(
        absl::StrCat("job ", command.job, " is not that of ", id, ", which is ",
                     allocation.job.empty() ? "not known" : allocation.job));
  const std::vector<std::string>& hosts = allocation.hosts;
  const auto host = std::find(hosts.begin(), hosts.end(), command.node);
  if (host == hosts.end())
    return absl::PermissionDeniedError(
        absl::StrCat("node ", command.node, " is none of job ", command.job, " of ", id));
  const std::string& worker =
      allocation.workers.at(static_cast<size_t>(std::distance(hosts.begin(), host)));
  if (worker != command.worker)
    return absl::PermissionDeniedError(
        absl::StrCat("node ", command.node, " of ", id, " is ", worker, ", not ", command.worker));
  const std::vector<std::string>& enrolled = allocation.enrolled_hosts;
  if (std::find(enrolled.begin(), enrolled.end(), command.node) == enrolled.end())
    return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("node ", command.node, " has enrolled in job ",
                                                  command.job, " before: it does so once"));
}

}  // namespace

absl::StatusOr<Decision> Decide(const Context& context, const RequestAllocation& command) {
  const State& state = context.state;
  const auto made = state.requests.find({context.standing, context.principal, command.request_id});
  if (!command.request_id.empty() && made != state.requests.end()) {
    const absl::StatusOr<AllocationId> id = ParseAllocationId(made->second.made);
    if (!id.ok() || !state.allocations.contains(*id))
      return absl::AlreadyExistsError(
          absl::StrCat("request_id ", command.request_id, " has made ", made->second.made));
    return Decision{.reply = state.allocations.at(*id)};
  }
  RETURN_IF_ERROR(CheckSpec(state, context.launcher, command.spec));
  AllocationRequested event{.allocation = AllocationId{state.last_allocation + 1},
                            .spec = command.spec,
                            .reason = command.reason.substr(0, kTextBytesMax),
                            .request_id = command.request_id,
                            .standing = context.standing};
  event.spec.launcher = context.launcher.launcher;
  if (event.spec.node_count == 0) event.spec.node_count = context.launcher.node_count_max;
  if (const auto it = state.submissions.find(event.spec.submission);
      it != state.submissions.end()) {
    event.spec.profile = it->second.spec.fleet;
    event.spec.organization = it->second.spec.organization;
  }
  Decision decision{.reply = Allocation{.id = event.allocation}};
  decision.events.push_back(std::move(event));
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const ReleaseAllocation& command) {
  const AllocationId id = command.allocation;
  if (id.number < 1 || id.number > context.state.last_allocation)
    return absl::NotFoundError(absl::StrCat("there is no allocation ", id.ToString()));
  const auto it = context.state.allocations.find(id);
  if (it == context.state.allocations.end() || it->second.state == AllocationState::kEnded)
    return absl::FailedPreconditionError(
        absl::StrCat("allocation ", id.ToString(), " has ended already"));
  if (it->second.spec.launcher == kAttachLauncher)
    return absl::FailedPreconditionError(
        absl::StrCat("allocation ", id.ToString(),
                     " is of workers that came by themselves: stop their agents where they run, or "
                     "keep runs from them with assay node drain"));
  Decision decision{.reply = it->second};
  if (it->second.state != AllocationState::kReleasing)
    decision.events.push_back(AllocationReleasing{
        .allocation = id,
        .reason = command.reason.empty() ? absl::StrCat("released by ", context.principal)
                                         : command.reason.substr(0, kTextBytesMax)});
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const LauncherStarted& command) {
  Decision decision{.reply = Done{}};
  bool is_there = false;
  for (const auto& [id, allocation] : context.state.allocations) {
    const std::string& launcher = allocation.spec.launcher;
    if (launcher == kAttachLauncher || launcher == kSubmitterLauncher ||
        allocation.state == AllocationState::kEnded)
      continue;
    if (launcher == command.launcher) {
      is_there = true;
      continue;
    }
    std::vector<Event> end =
        EndAllocation(context.state, allocation,
                      absl::StrCat("launcher \"", launcher, "\" is not configured any more"));
    std::move(end.begin(), end.end(), std::back_inserter(decision.events));
  }
  if (command.is_wanted_at_once && !is_there)
    decision.events.push_back(AllocationRequested{
        .allocation = AllocationId{context.state.last_allocation + 1},
        .spec = {.launcher = command.launcher, .node_count = command.node_count_max},
        .reason = "configured"});
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const EnrolNode& command) {
  RETURN_IF_ERROR(CheckName("worker", command.worker));
  const std::string id = command.allocation.ToString();
  const auto it = context.state.allocations.find(command.allocation);
  if (it == context.state.allocations.end())
    return absl::PermissionDeniedError(
        absl::StrCat("allocation ", id, " is none of this coordinator's, or has ended"));
  const Allocation& allocation = it->second;
  if (allocation.spec.launcher == kSubmitterLauncher)
    return absl::PermissionDeniedError(
        absl::StrCat("the job of ", id, " is a submitter's, whose nodes enrol by tokens"));
  if (allocation.state == AllocationState::kRequested)
    return absl::UnavailableError(
        absl::StrCat("the batch system has not said yet that the job of ", id, " runs: ask again"));
  if (!IsServing(allocation.state))
    return absl::PermissionDeniedError(absl::StrCat("the job of ", id,
                                                    " does not run any more: the allocation is ",
                                                    ToString(allocation.state)));
  RETURN_IF_ERROR(CheckNode(allocation, command));
  Decision decision{.reply = allocation};
  decision.events.push_back(
      NodeEnrolled{.allocation = allocation.id, .worker = command.worker, .host = command.node});
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const LaunchReported& command) {
  Decision decision{.reply = Done{}};
  const auto it = context.state.allocations.find(command.allocation);
  if (it == context.state.allocations.end() || it->second.state == AllocationState::kEnded)
    return decision;
  const Allocation& allocation = it->second;
  const std::string reason = command.reason.substr(0, kTextBytesMax);
  switch (command.outcome) {
    case LaunchReported::Outcome::kGranted: {
      ASSIGN_OR_RETURN(decision.events, Grant(context, allocation, command));
      break;
    }
    case LaunchReported::Outcome::kFailed:
      decision.events.push_back(Failed(allocation, reason, context.now_us));
      break;
    case LaunchReported::Outcome::kEnded:
      // The reason for which it was released tells more than that it is.
      decision.events = EndAllocation(context.state, allocation,
                                      reason.empty() ? allocation.state_reason : reason);
      break;
    case LaunchReported::Outcome::kPending: {
      // What identifies it is kept; how it goes is not.
      const bool is_news = command.job != allocation.job || allocation.failure_count > 0;
      if (is_news && !command.job.empty())
        decision.events.push_back(AllocationSubmitted{.allocation = allocation.id,
                                                      .job = command.job.substr(0, kTextBytesMax)});
      break;
    }
  }
  return decision;
}

}  // namespace assay::core
