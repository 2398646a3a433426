// CosmoFlow as a workload: learning rates by epoch, an error to get below, the reference's keys.

#ifndef WORKER_TRAINER_COSMOFLOW_WORKLOAD_H_
#define WORKER_TRAINER_COSMOFLOW_WORKLOAD_H_

#include <memory>

#include "absl/status/status.h"

#include "worker/trainer/hyperparameters.h"
#include "worker/trainer/spec.h"
#include "worker/trainer/workload.h"

namespace assay {

// See WorkloadEntry.
absl::Status FillCosmoflow(const Hyperparameters& parameters, TrainerSpec* spec);
std::unique_ptr<Workload> MakeCosmoflowWorkload(const TrainerSpec& spec);

}  // namespace assay

#endif  // WORKER_TRAINER_COSMOFLOW_WORKLOAD_H_
