// Somebody else's program, by contract 1 (docs/adapters.md): started with the variables of the
// contract and nothing else of this node's environment.

#ifndef WORKER_AGENT_WORKLOAD_PROGRAM_H_
#define WORKER_AGENT_WORKLOAD_PROGRAM_H_

#include <memory>

#include "worker/agent/workload/workload.h"

namespace assay::agent {

// per-rank: ranks_per_node processes on each node; per-node: one, which starts its ranks itself;
// srun, mpirun: node 0 starts that, and ranks_per_node of its processes come in on each node.
std::unique_ptr<const Workload> MakeProgram(const v1::RunSpec& spec, const RunDirectory& directory);

}  // namespace assay::agent

#endif  // WORKER_AGENT_WORKLOAD_PROGRAM_H_
