#include <cstdint>
#include <variant>

#include "worker/engine/backends/cuda/device/launch.h"
#include "worker/engine/backends/cuda/geometry.h"

namespace assay::cuda {
namespace {

template <typename Operation>
__global__ void __launch_bounds__(kThreadsPerBlock) ForEach(const Operation operation) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < operation.count; i += stride)
    operation(i);
}

}  // namespace

cudaError_t LaunchKernel(const Kernel& kernel, int multiprocessors, cudaStream_t stream) {
  return std::visit(
      [&](const auto& operation) {
        const Launch launch = LaunchFor(operation.count, multiprocessors);
        ForEach<<<launch.blocks, launch.threads, 0, stream>>>(operation);
        return cudaGetLastError();
      },
      kernel);
}

cudaError_t UpdateKernel(const Kernel& kernel, int multiprocessors, cudaGraphExec_t graph,
                         cudaGraphNode_t node) {
  return std::visit(
      [&](const auto& operation) {
        auto copy = operation;
        void* arguments[] = {&copy};
        cudaKernelNodeParams parameters = {};
        parameters.func = reinterpret_cast<void*>(&ForEach<decltype(copy)>);
        const Launch launch = LaunchFor(operation.count, multiprocessors);
        parameters.gridDim = dim3(launch.blocks);
        parameters.blockDim = dim3(launch.threads);
        parameters.kernelParams = arguments;
        return cudaGraphExecKernelNodeSetParams(graph, node, &parameters);
      },
      kernel);
}

}  // namespace assay::cuda
