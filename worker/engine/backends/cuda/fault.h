// From a device's faults to ours.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_FAULT_H_
#define WORKER_ENGINE_BACKENDS_CUDA_FAULT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// While a model is built. UNAVAILABLE: no GPU; RESOURCE_EXHAUSTED: no memory; INVALID_ARGUMENT: no
// implementation; INTERNAL: anything else.
absl::Status ToStatus(absl::string_view what, const Fault& fault);

// During a step, where nothing can be repaired: a fault ends the process with ExitCode::kBackend.
void Must(absl::string_view what, const Fault& fault);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_FAULT_H_
