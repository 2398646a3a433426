#include <cstdint>
#include <variant>

#include "worker/engine/backends/cuda/device/launch.h"
#include "worker/engine/backends/cuda/geometry.h"

namespace assay::cuda {
namespace {

// Operations that take many registers have smaller blocks: more of their warps fit a
// multiprocessor.
template <typename Operation>
concept NeedsRegisters = Operation::kNeedsRegisters;
template <typename Operation>
constexpr uint32_t kThreadsOf = NeedsRegisters<Operation> ? kThreadsPerBlock / 2 : kThreadsPerBlock;
template <typename Operation>
constexpr uint32_t kBlocksThatFit = NeedsRegisters<Operation> ? 3 : 1;

template <typename Operation>
__global__ void __launch_bounds__(kThreadsOf<Operation>, kBlocksThatFit<Operation>)
    ForEach(const Operation operation) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < operation.count; i += stride)
    operation(i);
}

constexpr unsigned kWarp = 32;

__device__ double SumOfWarp(double sum) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
    sum += __shfl_down_sync(0xFFFFFFFFU, sum, distance);
  return sum;  // in lane 0
}

__device__ Pair SumOfWarp(const Pair& sum) {
  return {SumOfWarp(sum.first), SumOfWarp(sum.second)};
}

// Each element by a whole block: for sums of many numbers with few results.
template <typename Operation>
__global__ void __launch_bounds__(kThreadsPerBlock) SumByBlocks(const Operation operation) {
  using Sum = typename Operation::Sum;
  __shared__ Sum warps[kThreadsPerBlock / kWarp];
  for (int64_t i = blockIdx.x; i < operation.count; i += gridDim.x) {
    const Sum part = SumOfWarp(operation.Part(i, threadIdx.x, kThreadsPerBlock));
    if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = part;
    __syncthreads();
    if (threadIdx.x == 0) {
      Sum sum = warps[0];
      for (unsigned warp = 1; warp < kThreadsPerBlock / kWarp; ++warp)
        sum += warps[warp];
      operation.Store(i, sum);
    }
    __syncthreads();  // before the next element overwrites `warps`
  }
}

template <typename Operation>
concept SummedByBlocks = Operation::kByBlocks;

// How an operation is started.
template <typename Operation>
struct Start {
  void (*function)(Operation);
  Launch launch;

  Start(const Operation& operation, int multiprocessors) {
    if constexpr (SummedByBlocks<Operation>) {
      function = &SumByBlocks<Operation>;
      launch = LaunchFor(operation.count * kThreadsPerBlock, multiprocessors);
    } else {
      function = &ForEach<Operation>;
      launch = LaunchFor(operation.count, multiprocessors, kThreadsOf<Operation>);
    }
  }
};

}  // namespace

cudaError_t LaunchKernel(const Kernel& kernel, int multiprocessors, cudaStream_t stream) {
  return std::visit(
      [&](auto operation) {
        const Start<decltype(operation)> start(operation, multiprocessors);
        void* arguments[] = {&operation};
        return cudaLaunchKernel(reinterpret_cast<const void*>(start.function),
                                dim3(start.launch.blocks), dim3(start.launch.threads), arguments, 0,
                                stream);
      },
      kernel);
}

cudaError_t UpdateKernel(const Kernel& kernel, int multiprocessors, cudaGraphExec_t graph,
                         cudaGraphNode_t node) {
  return std::visit(
      [&](auto operation) {
        const Start<decltype(operation)> start(operation, multiprocessors);
        void* arguments[] = {&operation};
        cudaKernelNodeParams parameters = {};
        parameters.func = reinterpret_cast<void*>(start.function);
        parameters.gridDim = dim3(start.launch.blocks);
        parameters.blockDim = dim3(start.launch.threads);
        parameters.kernelParams = arguments;
        return cudaGraphExecKernelNodeSetParams(graph, node, &parameters);
      },
      kernel);
}

}  // namespace assay::cuda
