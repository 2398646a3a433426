// Convolutions and fused blocks of the CUDA backend.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {

// With x, y and their gradients in `maps`: in float32 or, if the backend's precision allows
// rounding, TF32, or in bfloat16 where maps are that. Where the device's library has no
// implementation, more exact ones and at last a slow one of ours take its place, and the log says
// so. Convolutions in groups are ours always. RESOURCE_EXHAUSTED: no memory. `backend` must outlive
// the result.
absl::StatusOr<std::unique_ptr<Convolution>> MakeCudaConvolution(CudaBackend* backend,
                                                                 const ConvolutionLayout& layout,
                                                                 DType maps);

// In the backend's precision: the unpooled tensor, the largest of a model, is in bfloat16 if
// that is bfloat16. Otherwise as above.
absl::StatusOr<std::unique_ptr<ConvPool>> MakeCudaConvPool(CudaBackend* backend,
                                                           const ConvPoolShape& shape);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_CONVOLUTION_H_
