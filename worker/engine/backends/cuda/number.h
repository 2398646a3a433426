// What numbers the GPU multiplies, and a type for the short ones that any compiler knows.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_NUMBER_H_
#define WORKER_ENGINE_BACKENDS_CUDA_NUMBER_H_

#include <bit>
#include <cstddef>
#include <cstdint>

// Marks what is compiled for the GPU too.
#ifdef __CUDACC__
#define ASSAY_DEVICE __host__ __device__
#else
#define ASSAY_DEVICE
#endif

namespace assay::cuda {

// How convolutions and dense layers multiply; everything else is float32 always, and so are
// parameters, gradients and the optimizer.
enum class Precision : int32_t {
  kFloat32,   // float32 throughout; tensor cores are not used
  kTf32,      // float32 storage; tensor cores round factors to 10 bits of mantissa
  kBfloat16,  // convolutions read and write bfloat16 and add up in float32; dense layers as kTf32
};

// The upper half of a float32, rounded to the nearest, ties to even.
struct Bfloat16 {
  uint16_t bits;

  Bfloat16() = default;
  ASSAY_DEVICE explicit Bfloat16(float value) {
    const uint32_t word = Word(value);
    const bool is_nan = (word & 0x7FFFFFFFU) > 0x7F800000U;
    const uint32_t rounded = (word + 0x7FFFU + ((word >> 16) & 1U)) >> 16;
    bits = static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40U : rounded);
  }
  ASSAY_DEVICE explicit operator float() const {
    const uint32_t word = uint32_t{bits} << 16;
#ifdef __CUDA_ARCH__
    return __uint_as_float(word);
#else
    return std::bit_cast<float>(word);
#endif
  }

 private:
  ASSAY_DEVICE static uint32_t Word(float value) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(value);
#else
    return std::bit_cast<uint32_t>(value);
#endif
  }
};

// Bytes of what convolutions read and write.
constexpr size_t BytesOf(Precision precision) {
  return precision == Precision::kBfloat16 ? 2 : 4;
}

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_NUMBER_H_
