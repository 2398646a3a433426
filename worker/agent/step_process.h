// The agent's side of a step: makes its directory, starts it, stops it, and finds out how it ended,
// also after either of the two has crashed.

#ifndef WORKER_AGENT_STEP_PROCESS_H_
#define WORKER_AGENT_STEP_PROCESS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/run_spec.pb.h"

#include "common/clock.h"
#include "common/process.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

// The last argument of a step that inherits a listening socket.
inline constexpr char kListenerFlag[] = "--listener";

// Writes what the step reads. Afterwards the run is held: a restart finds it. Repeating it is
// harmless as long as the step has not begun.
absl::Status PrepareRun(const RunDirectory& directory, const v1::RunSpec& spec,
                        const v1::WorkerConfig& worker, const std::string& system_description_json);

// Starts `program` step DIRECTORY in a session of its own. A second start is harmless: the step
// that finds another's mark ends at once.
//   listener_fd: a listening socket, which the step gets as descriptor kInheritedFd and is told of
//   by the argument kListenerFlag; -1: none.
absl::StatusOr<ProcessId> StartStepProcess(const RunDirectory& directory,
                                           const std::string& program, int listener_fd = -1);

// The step of the directory as it recorded itself; nullopt if it has not begun or is of another
// boot.
std::optional<ProcessId> FindStepProcess(const RunDirectory& directory);

// Leaves the stop request, and signals the step if it has begun.
absl::Status StopStepProcess(const RunDirectory& directory);

// True if the process was sent SIGTERM or SIGINT and has not taken note of it yet: a step does once
// its ranks have started.
bool HasPendingStop(const ProcessId& process);

// Ends what a step that has ended left in its run's control group, and removes that: a step that
// gave its rights up cannot.
void EndRunGroup(const RunDirectory& directory);

// How the step ended; nullopt while it holds its lock, or one that left no mark yet does. If it
// ended without saying how (it crashed, the node was restarted, it never began), its trainers are
// killed, and an exit that says so is left for good: such a step can never begin any more. Call it
// only if no step is being started.
absl::StatusOr<std::optional<StepExit>> ResolveExit(const RunDirectory& directory,
                                                    const Clock& clock);

}  // namespace assay::agent

#endif  // WORKER_AGENT_STEP_PROCESS_H_
