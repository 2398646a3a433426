// A short vector of numbers that a thread of a kernel loads or stores with one instruction.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_VEC_H_
#define WORKER_ENGINE_BACKENDS_CUDA_VEC_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "worker/engine/bfloat16.h"

// Before a loop of fixed length whose counter indexes an array that should live in registers.
#ifdef __CUDA_ARCH__
#define ASSAY_UNROLL _Pragma("unroll")
#else
#define ASSAY_UNROLL
#endif

namespace assay::cuda {

// The GPU moves up to 16 bytes for a thread with one instruction, if they lie at a multiple of
// them; a longer one takes several.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Vec {
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

// values[j]; of two numbers in a word each with one instruction.
template <int kWidth, typename T>
ASSAY_DEVICE float FloatAt(const Vec<T, kWidth>& vec, int j) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, Bfloat16> && kWidth % 2 == 0) {
    const uint32_t word = reinterpret_cast<const uint32_t*>(vec.values)[j / 2];
    return __uint_as_float(j % 2 == 0 ? word << 16 : word & 0xFFFF0000U);
  }
#endif
  return float(vec.values[j]);
}

// The vector at an offset; zeros where there is nothing.
template <int kWidth, typename T>
ASSAY_DEVICE Vec<T, kWidth> VecIf(bool is_inside, const T* first, int64_t offset) {
  Vec<T, kWidth> vec = {};
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(vec) == sizeof(uint4)) {
    uint4 words = {0, 0, 0, 0};
    if (is_inside) words = *reinterpret_cast<const uint4*>(first + offset);
    *reinterpret_cast<uint4*>(vec.values) = words;
    return vec;
  }
#endif
  if (is_inside) vec = VecAt<kWidth>(first + offset);
  return vec;
}

// Stores 16 bytes at once, also what was computed number by number.
template <int kWidth, typename T>
ASSAY_DEVICE void StoreVec(const Vec<T, kWidth>& vec, T* to) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(vec) % sizeof(uint4) == 0) {
    const auto* const parts = reinterpret_cast<const uint4*>(vec.values);
    ASSAY_UNROLL
    for (size_t i = 0; i < sizeof(vec) / sizeof(uint4); ++i)
      asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                   :
                   : "l"(reinterpret_cast<uint4*>(to) + i), "r"(parts[i].x), "r"(parts[i].y),
                     "r"(parts[i].z), "r"(parts[i].w)
                   : "memory");
    return;
  }
#endif
  VecAt<kWidth>(to) = vec;
}

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_VEC_H_
