// What follows from the state and the time, without anybody asking: silence of workers, progress of
// runs and submissions. Pure functions; each gives the events that shall happen. Placement is in
// planner.h, leases of nodes are in allocate.h.

#ifndef SERVER_CORE_SCHEDULE_H_
#define SERVER_CORE_SCHEDULE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/core/core.h"
#include "server/core/event.h"
#include "server/core/types.h"

namespace assay::core {

using PresenceMap = std::map<std::string, Presence>;

// Appends what it means that nothing more will come of the worker: its part of a run that has not
// finished is given up, and it holds the run no longer.
void GiveUp(const State& state, const Worker& worker, std::vector<Event>* events);

// As GiveUp; and if that was not finished, the run has failed for `reason`.
void Lose(const State& state, const Worker& worker, const std::string& reason,
          std::vector<Event>* events);

// Workers that have been silent for too long become SUSPECT, then LOST; what a lost one held is
// given up.
std::vector<Event> WatchPresence(const State& state, const PresenceMap& presence,
                                 const Policy& policy, int64_t now_us);

// What the reports of its nodes, or their absence, make of a run that is ASSIGNED or RUNNING.
std::vector<Event> AdvanceRun(const State& state, const Run& run, const Policy& policy,
                              int64_t now_us);

// What its runs make of a submission: a failure's better explanation, a replacement, the check, or
// the end.
std::vector<Event> AdvanceSubmission(const State& state, const Submission& submission,
                                     const Policy& policy);

// The earliest time at which silence, a run's timeout, the end of a lease, another try of its
// launcher or of an order for a cache makes a difference; nullopt: never.
// All up to `now_us` has been considered.
std::optional<int64_t> NextDeadlineUs(const State& state, const PresenceMap& presence,
                                      const Policy& policy, int64_t now_us);

}  // namespace assay::core

#endif  // SERVER_CORE_SCHEDULE_H_
