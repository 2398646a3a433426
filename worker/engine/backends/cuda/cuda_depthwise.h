// Depthwise convolutions of kernel 3 of the CUDA backend.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_DEPTHWISE_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_DEPTHWISE_H_

#include <memory>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/maps.h"

namespace assay::cuda {

// Whether there are kernels for it: with kernel 3, at stride 1, or at 2 without dilation, and with
// at most kMaxColumns weights.
bool IsCudaDepthwise(const Conv2dShape& shape);

// Kernels of our own, in the backend's type of maps. IsCudaDepthwise.
// RESOURCE_EXHAUSTED: no memory. `backend` must outlive the result.
absl::StatusOr<std::unique_ptr<Convolution>> MakeCudaDepthwise(CudaBackend* backend,
                                                               const Conv2dShape& shape);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_DEPTHWISE_H_
