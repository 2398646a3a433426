// Several numbers that a kernel reads or writes at once.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_PACK_H_
#define WORKER_ENGINE_BACKENDS_CUDA_PACK_H_

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
struct alignas(sizeof(T) * kWidth) Pack {
  T values[kWidth];
};

// How many numbers that is.
template <typename T>
inline constexpr int kPackWidth = 16 / static_cast<int>(sizeof(T));

template <int kWidth, typename T>
ASSAY_DEVICE Pack<T, kWidth>& PackAt(T* first) {
  return *reinterpret_cast<Pack<T, kWidth>*>(first);
}
template <int kWidth, typename T>
ASSAY_DEVICE const Pack<T, kWidth>& PackAt(const T* first) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(first);
}

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_PACK_H_
