// Convolutions by cuDNN.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_CONVOLUTION_H_

#include <cudnn_graph.h>

#include <memory>

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// kUnsupported: cuDNN has no engine that keeps our promises for this problem (IsFaithful).
Fault PlanCudnnConvolution(const ConvolutionProblem& problem, cudnnHandle_t handle,
                           std::unique_ptr<ConvolutionPlan>* plan);

// Starts a call of a plan made above, on the stream of the plan's handle.
Fault RunCudnnConvolution(const ConvolutionCall& call);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUDNN_CONVOLUTION_H_
