// What follows from the state and the time, without anybody asking: silence of workers, progress of
// runs and submissions, and placement. Pure functions; each gives the events that shall happen.
//
// Placement is of whole gangs, first in first out by run id. A run that has to wait for busy
// workers keeps those free ones that it could use: no later run overtakes it on a worker that it
// wants, so it is placed at the latest when the runs before it have ended. A run that cannot be
// placed with all workers that are there, or whose organisation is at its limit, keeps nothing.

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

// RunAssigned for each run that can start now.
std::vector<Event> Place(const State& state, const PresenceMap& presence, const Policy& policy);

// The earliest time at which silence or a run's timeout makes a difference; nullopt: never.
std::optional<int64_t> NextDeadlineUs(const State& state, const PresenceMap& presence,
                                      const Policy& policy);

// True if the worker has the labels and the backend that the spec asks for.
bool Matches(const Worker& worker, const SubmissionSpec& spec);

// True if a run could be given to the worker at once.
bool IsFree(const Worker& worker, const PresenceMap& presence);

// How many workers match and are there: alive or suspect, busy or not.
int32_t CountPresent(const State& state, const SubmissionSpec& spec);

// Runs that each organisation has on workers now, and how many it may have; 0: any number.
std::map<std::string, int32_t> CountActiveRuns(const State& state);
int32_t RunLimit(const Policy& policy, const std::string& organization);

}  // namespace assay::core

#endif  // SERVER_CORE_SCHEDULE_H_
