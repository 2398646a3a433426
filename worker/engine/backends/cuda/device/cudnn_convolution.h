// Convolutions by cuDNN.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_CONVOLUTION_H_

#include <cudnn_graph.h>

#include <memory>
#include <vector>

#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/device/cudnn_descriptor.h"

namespace assay::cuda {

// What is planned for: a GPU by its handle or, for plans that never run, one that need not be there
// by a finalized CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* device = nullptr;
};

// As Device::PlanConvolutions, of the engines that keep our promises (IsFaithful). What cuDNN calls
// its fallback is asked for only where it proposes nothing else of use.
Fault PlanCudnnConvolutions(const ConvolutionProblem& problem, const CudnnTarget& target,
                            const PlanOptions& options,
                            std::vector<std::unique_ptr<ConvolutionPlan>>* plans);

// Starts a call of a plan made above, on the stream of the plan's handle.
Fault RunCudnnConvolution(const ConvolutionCall& call);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_CONVOLUTION_H_
