// The legal moves between states, once, as tables. Everything else is a bug of ours.

#ifndef SERVER_CORE_TRANSITIONS_H_
#define SERVER_CORE_TRANSITIONS_H_

#include "absl/status/status.h"

#include "server/core/types.h"

namespace assay::core {

// OK if the move is legal; staying is no move and always legal for workers, never for the others.
// FAILED_PRECONDITION otherwise, naming both states.
absl::Status CheckMove(SubmissionState source, SubmissionState target);
absl::Status CheckMove(RunState source, RunState target);
absl::Status CheckMove(WorkerState source, WorkerState target);
absl::Status CheckMove(AllocationState source, AllocationState target);

}  // namespace assay::core

#endif  // SERVER_CORE_TRANSITIONS_H_
