// Calls in words, for errors, logs and traces: what, of which shape and type, and how much work.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CALL_TEXT_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CALL_TEXT_H_

#include <string>

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// "forward bf16 affine_relu x=2,16,1,768,1152 w=32,16,1,3,3 stride=2 dilation=1": extents as
// ConvolutionProblem has them.
std::string TextOf(const ConvolutionProblem& problem);

// "convolution", the problem and the plan's engine; "product tf32 m=128 n=4 k=512 ta=0 tb=1";
// "kernel PoolBackward<Bfloat16> count=8388608", whose count is of threads.
std::string TextOf(const Call& call);

// What a call must at least do. Multiply-adds are counted twice, bytes once for each number read or
// written; zeros: not known (kernels of ours, of which only the count is).
struct CallWork {
  double flops = 0, bytes = 0;
};
CallWork WorkOf(const Call& call);

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CALL_TEXT_H_
