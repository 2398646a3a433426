// Apply: the only code that writes State; live, at a fold of the log, and in the simulator.

#ifndef SERVER_CORE_APPLY_H_
#define SERVER_CORE_APPLY_H_

#include "server/core/event.h"
#include "server/core/types.h"

namespace assay::core {

// Makes `state` what it is after `event`, which must be the next in the log. Cannot fail: an event
// that does not fit the state is a bug of ours and ends the process.
void Apply(const RecordedEvent& event, State* state);

// Drops a run that no worker holds and whose submission is not in memory, or a submission with its
// runs that has ended and of which no worker holds a run. False if it has to stay.
bool DropIfRedundant(RunId run, State* state);
bool DropIfRedundant(SubmissionId submission, State* state);

// Drops all that is redundant (such submissions, what was forgotten, allocations that have ended
// and have no worker left), as a restart would: then a fold of the log equals what is loaded.
void DropAllRedundant(State* state);

// Recomputes the members of State that are derived from the others.
void Index(State* state);

}  // namespace assay::core

#endif  // SERVER_CORE_APPLY_H_
