// The native trainer, assay-train: one process for each rank, told everything by a spec file.

#ifndef WORKER_AGENT_WORKLOAD_TRAINER_H_
#define WORKER_AGENT_WORKLOAD_TRAINER_H_

#include <memory>

#include "worker/agent/workload/workload.h"

namespace assay::agent {

// Threads and cores of the node are shared out evenly among its ranks.
std::unique_ptr<const Workload> MakeTrainer(const v1::RunSpec& spec, const RunDirectory& directory);

}  // namespace assay::agent

#endif  // WORKER_AGENT_WORKLOAD_TRAINER_H_
