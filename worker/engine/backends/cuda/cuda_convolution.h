// Convolutions and fused blocks of the CUDA backend.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {

// In float32 or, if the backend's precision allows rounding, TF32. Where the device's library has
// no implementation, a slow one of ours takes its place, and the log says so. Convolutions in
// groups are ours always. RESOURCE_EXHAUSTED: no memory. `backend` must outlive the result.
absl::StatusOr<std::unique_ptr<Convolution>> MakeCudaConvolution(CudaBackend* backend,
                                                                 const ConvolutionLayout& layout);

// In the backend's precision: the unpooled tensor, the largest of a model, is in short numbers if
// that is bfloat16. Otherwise as above.
absl::StatusOr<std::unique_ptr<ConvPool>> MakeCudaConvPool(CudaBackend* backend,
                                                           const ConvPoolShape& shape);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_CONVOLUTION_H_
