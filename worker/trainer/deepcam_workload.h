// DeepCAM as a workload: learning rates by optimizer step, an intersection over union to reach, the
// reference's keys (mlcommons/hpc, deepcam, train.py and driver/).

#ifndef WORKER_TRAINER_DEEPCAM_WORKLOAD_H_
#define WORKER_TRAINER_DEEPCAM_WORKLOAD_H_

#include <memory>

#include "absl/status/status.h"

#include "worker/trainer/hyperparameters.h"
#include "worker/trainer/spec.h"
#include "worker/trainer/workload.h"

namespace assay {

// See WorkloadEntry.
absl::Status FillDeepcam(const Hyperparameters& parameters, TrainerSpec* spec);
std::unique_ptr<Workload> MakeDeepcamWorkload(const TrainerSpec& spec);

}  // namespace assay

#endif  // WORKER_TRAINER_DEEPCAM_WORKLOAD_H_
