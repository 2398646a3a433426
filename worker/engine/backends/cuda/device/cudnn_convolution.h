// Convolutions by cuDNN.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_CONVOLUTION_H_

#include <cudnn_graph.h>

#include <memory>

#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/device/cudnn_descriptor.h"

namespace assay::cuda {

// What is planned for: a GPU by its handle or, for plans that never run, one that need not be there
// by a finalized CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* device = nullptr;
};

// kUnsupported: cuDNN has no engine that keeps our promises for this problem (IsFaithful).
Fault PlanCudnnConvolution(const ConvolutionProblem& problem, const CudnnTarget& target,
                           std::unique_ptr<ConvolutionPlan>* plan);

// Starts a call of a plan made above, on the stream of the plan's handle.
Fault RunCudnnConvolution(const ConvolutionCall& call);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_CONVOLUTION_H_
