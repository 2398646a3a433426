// A short vector of numbers that a thread of a kernel loads or stores with one instruction.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_VEC_H_
#define WORKER_ENGINE_BACKENDS_CUDA_VEC_H_

#include "worker/engine/bfloat16.h"

// Before a loop of fixed length whose counter indexes an array that should live in registers.
#ifdef __CUDA_ARCH__
#define ASSAY_UNROLL _Pragma("unroll")
#else
#define ASSAY_UNROLL
#endif

namespace assay::cuda {

// The GPU moves up to 16 bytes for a thread with one instruction, if they lie at a multiple of
// them.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Vec {
  T values[kWidth];
};

// How many numbers that is.
template <typename T>
inline constexpr int kVecWidth = 16 / static_cast<int>(sizeof(T));

template <int kWidth, typename T>
ASSAY_DEVICE Vec<T, kWidth>& VecAt(T* first) {
  return *reinterpret_cast<Vec<T, kWidth>*>(first);
}
template <int kWidth, typename T>
ASSAY_DEVICE const Vec<T, kWidth>& VecAt(const T* first) {
  return *reinterpret_cast<const Vec<T, kWidth>*>(first);
}

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_VEC_H_
