// The upper half of a float32 as a number of its own, for any compiler, on the host and on GPUs.

#ifndef WORKER_ENGINE_BFLOAT16_H_
#define WORKER_ENGINE_BFLOAT16_H_

#include <bit>
#include <cstdint>

// Marks what is compiled for the GPU too.
#ifdef __CUDACC__
#include <cuda_bf16.h>
#define ASSAY_DEVICE __host__ __device__
#else
#define ASSAY_DEVICE
#endif

namespace assay {

// Eight bits of mantissa, float32's range. Rounds to the nearest, ties to even.
struct Bfloat16 {
  uint16_t bits;

  Bfloat16() = default;
  ASSAY_DEVICE explicit Bfloat16(float value) {
#ifdef __CUDA_ARCH__
    bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));  // one instruction
#else
    const auto word = std::bit_cast<uint32_t>(value);
    const bool is_nan = (word & 0x7FFFFFFFU) > 0x7F800000U;
    const uint32_t rounded = (word + 0x7FFFU + ((word >> 16) & 1U)) >> 16;
    bits = static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40U : rounded);
#endif
  }
  ASSAY_DEVICE explicit operator float() const {
    const uint32_t word = uint32_t{bits} << 16;
#ifdef __CUDA_ARCH__
    return __uint_as_float(word);
#else
    return std::bit_cast<float>(word);
#endif
  }
};

}  // namespace assay

#endif  // WORKER_ENGINE_BFLOAT16_H_
