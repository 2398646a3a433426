// What numbers the GPU multiplies.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_NUMBER_H_
#define WORKER_ENGINE_BACKENDS_CUDA_NUMBER_H_

#include <cstddef>
#include <cstdint>

#include "worker/engine/bfloat16.h"

namespace assay::cuda {

// How convolutions and dense layers multiply, and what lies between them; everything else is
// float32 always: parameters, their gradients, statistics, sums, losses and the optimizer.
enum class Precision : int32_t {
  kFloat32,   // float32 throughout; tensor cores are not used
  kTf32,      // float32 storage; tensor cores round factors to 10 bits of mantissa
  kBfloat16,  // maps and fused blocks' insides are bfloat16, added up in float32; all else as kTf32
};

// Bytes of what convolutions read and write.
constexpr size_t BytesOf(Precision precision) {
  return precision == Precision::kBfloat16 ? 2 : 4;
}

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_NUMBER_H_
