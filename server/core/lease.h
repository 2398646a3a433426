// What is asked of a batch system for the runs of a submission: of which profile, for how long,
// with which nodes; and whether it could ever be given.

#ifndef SERVER_CORE_LEASE_H_
#define SERVER_CORE_LEASE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/core/command.h"
#include "server/core/event.h"
#include "server/core/profile_health.h"
#include "server/core/schedule.h"
#include "server/core/types.h"

namespace assay::core {

// The profile that the spec names; where it names none, what the launcher itself may. nullopt: the
// launcher has no such profile.
std::optional<LaunchProfile> FindProfile(const LauncherStarted& launcher,
                                         const SubmissionSpec& spec);

// What the next run of the submission may take at most: half as much again as is expected, and 3
// min to start and end. Expected is what the submitter says, and at least a fifth more than the
// slowest of its runs that have succeeded; 30 min where nothing is known.
int64_t RunNeedUs(const State& state, const Submission& submission);

// The time for which an allocation for all runs that the submission has queued is asked for.
int64_t LeaseNeedUs(const State& state, const Submission& submission);

// False if no allocation of the profile is long enough for one run of the submission.
bool FitsLease(const State& state, const Submission& submission, const LaunchProfile& profile);

// What of `spec` the launcher can never give (common/rules/fleet_rules.h), where it would have to.
std::vector<Finding> CheckFleet(const State& state, const LauncherStarted& launcher,
                                const SubmissionSpec& spec);

// The allocation that a run of `spec`, none of which is queued yet, would be given; nullopt: none
// is asked for, or it could not be.
std::optional<AllocationSpec> PlanLease(const State& state, const LauncherStarted& launcher,
                                        const SubmissionSpec& spec);

// The scheduler's requests, for queued runs that wait for nodes which `launcher` could provide.
std::vector<Event> AskForNodes(const State& state, const PresenceMap& presence,
                               const LauncherStarted& launcher, const ProfileHealth& health,
                               int64_t now_us);

}  // namespace assay::core

#endif  // SERVER_CORE_LEASE_H_
