// Tells whether a process is the step of a run, another than this process's perhaps. A program's
// name or path says nothing: anybody may start it. What says it is the directory that agents make
// for a run and nobody else can: a step holds its lock as long as it lives.

#ifndef WORKER_AGENT_OTHER_RUNS_H_
#define WORKER_AGENT_OTHER_RUNS_H_

#include <sys/types.h>

#include <vector>

namespace assay::agent {

// True if `pid` was started as the step of a run's directory that belongs to `agent` (or to root),
// that nobody else may write, and whose lock it holds. Of a lock the kernel says who holds it now
// (/proc/locks), so neither a number that another process has got nor an earlier boot can deceive.
// Needs no rights but to pass through the directory. Where ranks share the agent's account, nothing
// that is the agent's alone can tell: there a rank can make such a directory, too.
bool IsStepOfRun(pid_t pid, uid_t agent);

// The steps of this node but this process, in no order: empty where it has the node for itself.
std::vector<pid_t> OtherSteps(uid_t agent);

}  // namespace assay::agent

#endif  // WORKER_AGENT_OTHER_RUNS_H_
