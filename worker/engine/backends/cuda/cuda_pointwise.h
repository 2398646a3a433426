// Convolutions of kernel 1 and stride 1 of the CUDA backend.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_POINTWISE_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_POINTWISE_H_

#include <memory>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/maps.h"

namespace assay::cuda {

// The pixels' matrix times the weights, by cuBLAS, in the backend's type of maps. Normalised ones
// have the statistics folded into a copy of the weights and the product's bias, each time anew:
// weights are few beside a map. RESOURCE_EXHAUSTED: no memory. `backend` must outlive the result.
absl::StatusOr<std::unique_ptr<Convolution>> MakeCudaPointwise(CudaBackend* backend,
                                                               const Conv2dShape& shape);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_POINTWISE_H_
