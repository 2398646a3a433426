// DeepCAM as a workload: learning rates by optimizer step, an intersection over union to reach, the
// reference's keys (mlcommons/hpc, deepcam, train.py and driver/).

#ifndef WORKER_TRAINER_DEEPCAM_WORKLOAD_H_
#define WORKER_TRAINER_DEEPCAM_WORKLOAD_H_

#include <memory>

#include "absl/status/statusor.h"

#include "worker/trainer/hyperparameters.h"
#include "worker/trainer/spec.h"
#include "worker/trainer/workload.h"

namespace assay {

// Reads its settings from `parameters`; those that are not given take the reference's defaults.
// `spec`, in which ranks and batch are known, must outlive the result. INVALID_ARGUMENT names the
// field, what it holds and what is allowed.
absl::StatusOr<std::unique_ptr<const Workload>> MakeDeepcamWorkload(
    const Hyperparameters& parameters, const TrainerSpec& spec);

}  // namespace assay

#endif  // WORKER_TRAINER_DEEPCAM_WORKLOAD_H_
