// Starts kernels: the only part that the CUDA compiler sees.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEVICE_LAUNCH_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEVICE_LAUNCH_H_

#include <cuda_runtime_api.h>

#include "worker/engine/backends/cuda/kernels.h"

namespace assay::cuda {

// Starts `kernel` on `stream`.
cudaError_t LaunchKernel(const Kernel& kernel, int multiprocessors, cudaStream_t stream);

// Gives `node`, which LaunchKernel recorded for a kernel of the same kind, the arguments of
// another.
cudaError_t UpdateKernel(const Kernel& kernel, int multiprocessors, cudaGraphExec_t graph,
                         cudaGraphNode_t node);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEVICE_LAUNCH_H_
