#include "server/core/lease.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/program_contract.h"
#include "common/rules/fleet_rules.h"
#include "common/rules/programs.h"
#include "server/core/planner.h"

namespace assay::core {
namespace {

constexpr int64_t kMinuteUs = 60LL * 1'000'000;
// What a batch system is asked for beyond the time of the runs.
constexpr int64_t kSlackOfLeaseUs = 10 * kMinuteUs;
constexpr int64_t kSlackOfRunUs = 3 * kMinuteUs;
// A run of which nothing is known, and how much longer than expected one may take.
constexpr int64_t kRunEstimateUs = 30 * kMinuteUs;
constexpr double kRunMargin = 1.5;
constexpr double kPastRunMargin = 1.2;

// `slowest_us`: of the runs so far; 0: there are none.
int64_t NeedOfRun(const SubmissionSpec& spec, int64_t slowest_us) {
  const double told_us = static_cast<double>(spec.minutes_per_run) * kMinuteUs;
  double estimate_us = std::max(told_us, kPastRunMargin * static_cast<double>(slowest_us));
  if (estimate_us <= 0) estimate_us = kRunEstimateUs;
  return static_cast<int64_t>(kRunMargin * estimate_us) + kSlackOfRunUs;
}

bool Fits(int64_t run_need_us, const LaunchProfile& profile) {
  return profile.lifetime_us_max == 0 || kSlackOfLeaseUs + run_need_us <= profile.lifetime_us_max;
}

int64_t Cap(int64_t lifetime_us, const LaunchProfile& profile) {
  return profile.lifetime_us_max == 0 ? lifetime_us
                                      : std::min(lifetime_us, profile.lifetime_us_max);
}

// NodesAtOnce as allocations count nodes: a submission asks for at most kNodeCountMax.
int32_t NodesNeeded(const SubmissionSpec& spec) {
  return static_cast<int32_t>(NodesAtOnce(spec));
}

// How many runs go one after the other if `run_count` are left: instances go side by side.
int64_t Turns(const SubmissionSpec& spec, int64_t run_count) {
  return IsThroughput(spec) ? 1 : std::max<int64_t>(run_count, 1);
}

// Allocations of the launcher that have not ended; `profile`: of that alone.
int32_t CountOf(const State& state, const LauncherStarted& launcher, const std::string* profile) {
  return static_cast<int32_t>(
      std::count_if(state.allocations.begin(), state.allocations.end(), [&](const auto& entry) {
        const AllocationSpec& spec = entry.second.spec;
        return spec.launcher == launcher.launcher &&
               entry.second.state != AllocationState::kEnded &&
               (profile == nullptr || spec.profile == *profile);
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

// True if workers that came otherwise would do, so that the launcher need not be asked.
bool HasWorkers(const State& state, const SubmissionSpec& spec) {
  std::map<AllocationId, int32_t> counts;
  for (const auto& [name, worker] : state.workers) {
    const auto it = state.allocations.find(worker.allocation);
    if (it == state.allocations.end() || !MayUse(it->second, SubmissionId{}) ||
        worker.state == WorkerState::kGone || worker.state == WorkerState::kLost ||
        !Matches(worker, spec))
      continue;
    if (++counts[it->first] >= NodesAtOnce(spec)) return true;
  }
  return false;
}

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
  const std::vector<std::string>& excluded = submission.absent_hosts;
  const bool is_any_excluded =
      std::any_of(last->node_names.begin(), last->node_names.end(), [&](const std::string& host) {
        return std::find(excluded.begin(), excluded.end(), host) != excluded.end();
      });
  return is_any_excluded ? std::vector<std::string>{} : last->node_names;
}

AllocationSpec Request(const LauncherStarted& launcher, const SubmissionSpec& spec) {
  return {.launcher = launcher.launcher,
          .node_count = std::max(NodesNeeded(spec), launcher.node_count_min),
          .profile = spec.fleet,
          .organization = spec.organization};
}

std::string NamesOf(const LauncherStarted& launcher) {
  return absl::StrJoin(launcher.profiles, ", ", [](std::string* out, const LaunchProfile& profile) {
    out->append(profile.name);
  });
}

Finding UnknownProfile(const LauncherStarted& launcher, const SubmissionSpec& spec) {
  if (launcher.profiles.empty())
    return rules::FleetFinding(
        "R-FLT-001", spec.fleet,
        absl::StrCat("leave fleet out: launcher \"", launcher.launcher, "\" has no profiles"));
  return rules::FleetFinding("R-FLT-001", spec.fleet,
                             absl::StrCat("choose one of ", NamesOf(launcher)));
}

// One allocation for each submission that waits and has none.
std::vector<Event> AskForEach(const State& state, const PresenceMap& presence,
                              const LauncherStarted& launcher, const ProfileHealth& health,
                              int64_t now_us) {
  std::vector<Event> events;
  std::set<SubmissionId> seen;
  std::map<std::string, int32_t> asked;  // by profile
  int32_t left = launcher.allocation_count_max - CountOf(state, launcher, nullptr);
  for (const RunId id : state.queued) {
    if (left <= 0) break;
    const Submission& submission = state.submissions.at(state.runs.at(id).submission);
    const SubmissionSpec& spec = submission.spec;
    const int32_t node_count = NodesNeeded(spec);
    const std::optional<LaunchProfile> profile = FindProfile(launcher, spec);
    if (!seen.insert(submission.id).second || !profile.has_value() ||
        node_count > profile->node_count_max ||
        submission.lease_failure_count >= kLeaseFailureCountMax || HasOwn(state, submission.id) ||
        !FitsLease(state, submission, *profile) ||
        health.FindPause(spec.fleet, now_us) != nullptr ||
        BestCapacity(state, presence, spec, submission.id).present_count >= node_count)
      continue;
    const int32_t others = CountOf(state, launcher, &spec.fleet) + asked[spec.fleet];
    if (profile->allocation_count_max > 0 && others >= profile->allocation_count_max) continue;
    if (others > 0 && health.IsOnTrial(spec.fleet)) continue;
    AllocationSpec request = Request(launcher, spec);
    request.submission = submission.id;
    request.lifetime_us = Cap(LeaseNeedUs(state, submission), *profile);
    request.wanted_hosts = HostsOfSet(state, submission);
    request.excluded_hosts = submission.absent_hosts;
    events.push_back(AllocationRequested{
        .allocation = AllocationId{state.last_allocation + 1 + std::ssize(events)},
        .spec = std::move(request),
        .reason = absl::StrCat("run ", id.ToString(), " waits for ", node_count, " nodes")});
    ++asked[spec.fleet];
    --left;
  }
  return events;
}

}  // namespace

std::optional<LaunchProfile> FindProfile(const LauncherStarted& launcher,
                                         const SubmissionSpec& spec) {
  if (spec.fleet.empty())
    return LaunchProfile{.node_count_max = launcher.node_count_max,
                         .lifetime_us_max = launcher.lifetime_us_max};
  for (const LaunchProfile& profile : launcher.profiles)
    if (profile.name == spec.fleet) return profile;
  return std::nullopt;
}

int64_t RunNeedUs(const State& state, const Submission& submission) {
  int64_t slowest_us = 0;
  for (const RunId id : submission.runs) {
    const Run& run = state.runs.at(id);
    if (run.state == RunState::kSucceeded)
      slowest_us = std::max(slowest_us, run.ended_at_us - run.assigned_at_us);
  }
  return NeedOfRun(submission.spec, slowest_us);
}

int64_t LeaseNeedUs(const State& state, const Submission& submission) {
  const auto left =
      std::count_if(submission.runs.begin(), submission.runs.end(),
                    [&state](RunId id) { return state.runs.at(id).state == RunState::kQueued; });
  return kSlackOfLeaseUs + Turns(submission.spec, left) * RunNeedUs(state, submission);
}

bool FitsLease(const State& state, const Submission& submission, const LaunchProfile& profile) {
  return Fits(RunNeedUs(state, submission), profile);
}

std::vector<Finding> CheckFleet(const State& state, const LauncherStarted& launcher,
                                const SubmissionSpec& spec) {
  if (launcher.launcher.empty()) return {};  // it has not said yet what it gives
  const auto* command = std::get_if<CommandWorkload>(&spec.workload);
  // Agents that come by themselves may be in a job; those that know better refuse the run.
  if (command != nullptr && command->launcher == kSrun && launcher.launcher == kLocalLauncher)
    return {rules::SrunWithoutSlurm(launcher.launcher)};
  const std::optional<LaunchProfile> profile = FindProfile(launcher, spec);
  if (!profile.has_value()) return {UnknownProfile(launcher, spec)};
  if (!launcher.is_per_submission || HasWorkers(state, spec)) return {};
  std::vector<Finding> findings;
  if (NodesAtOnce(spec) > profile->node_count_max)
    findings.push_back(rules::FleetFinding(
        "R-FLT-002", absl::StrCat(NodesAtOnce(spec)),
        absl::StrCat("ask for at most ", profile->node_count_max, " nodes",
                     launcher.profiles.empty() ? "" : ", or choose another profile")));
  if (const int64_t need_us = NeedOfRun(spec, 0); !Fits(need_us, *profile))
    findings.push_back(rules::FleetFinding(
        "R-FLT-003",
        absl::StrCat(need_us / kMinuteUs, " min for a run and ", kSlackOfLeaseUs / kMinuteUs,
                     " to spare, of at most ", profile->lifetime_us_max / kMinuteUs, " min")));
  if (profile->is_preemptible && !spec.allow_preemptible)
    findings.push_back(
        rules::FleetFinding("R-FLT-004", absl::StrCat("none, for profile ", spec.fleet)));
  return findings;
}

std::optional<AllocationSpec> PlanLease(const State& state, const LauncherStarted& launcher,
                                        const SubmissionSpec& spec) {
  const std::optional<LaunchProfile> profile = FindProfile(launcher, spec);
  if (!launcher.is_per_submission || !profile.has_value() || HasWorkers(state, spec) ||
      !CheckFleet(state, launcher, spec).empty())
    return std::nullopt;
  AllocationSpec request = Request(launcher, spec);
  request.lifetime_us =
      Cap(kSlackOfLeaseUs + Turns(spec, spec.run_count) * NeedOfRun(spec, 0), *profile);
  return request;
}

std::vector<Event> AskForNodes(const State& state, const PresenceMap& presence,
                               const LauncherStarted& launcher, const ProfileHealth& health,
                               int64_t now_us) {
  if (launcher.allocation_count_max <= CountOf(state, launcher, nullptr)) return {};
  if (launcher.is_per_submission) return AskForEach(state, presence, launcher, health, now_us);
  for (const RunId id : state.queued) {
    const Run& run = state.runs.at(id);
    const SubmissionSpec& spec = state.submissions.at(run.submission).spec;
    const int32_t node_count = NodesNeeded(spec);
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

}  // namespace assay::core
