// Where an element of a tensor lies, for kernels.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_POSITION_H_
#define WORKER_ENGINE_BACKENDS_CUDA_POSITION_H_

#include <cstdint>
#include <limits>

#include "worker/engine/bfloat16.h"

namespace assay::cuda {

// A divisor that the host knows: on the GPU a division by it is a product. Exact where numerator *
// divisor < 2^64, as for all positions in a tensor.
struct Divisor {
  int64_t value = 1;
  uint64_t factor = 0;  // 2^64 / value, rounded up; of 1, for which it is too large: 0

  constexpr Divisor() = default;
  constexpr Divisor(int64_t of)  // NOLINT(google-explicit-constructor): for initialisers
      : value(of), factor(of > 1 ? ~uint64_t{0} / static_cast<uint64_t>(of) + 1 : 0) {}

  ASSAY_DEVICE int64_t Quotient(int64_t numerator) const {
    const auto n = static_cast<uint64_t>(numerator);
#ifdef __CUDA_ARCH__
    const uint64_t high = __umul64hi(n, factor);
#else
    // Portable for compilers without 128 bits, and warnings of those that have them.
    const uint64_t low = factor & 0xFFFFFFFFU, top = factor >> 32;
    const uint64_t n_low = n & 0xFFFFFFFFU, n_top = n >> 32;
    const uint64_t middle = n_low * top + ((n_low * low) >> 32);
    const uint64_t other = n_top * low + (middle & 0xFFFFFFFFU);
    const uint64_t high = n_top * top + (middle >> 32) + (other >> 32);
#endif
    return value == 1 ? numerator : static_cast<int64_t>(high);
  }
  // What is left of a numerator with this quotient: less than 2^31.
  ASSAY_DEVICE int64_t Rest(int64_t numerator, int64_t quotient) const {
    return static_cast<int64_t>(static_cast<uint32_t>(numerator) -
                                static_cast<uint32_t>(quotient) * static_cast<uint32_t>(value));
  }
  friend bool operator==(const Divisor&, const Divisor&) = default;
};

// Where an element lies in a (batch, depth, height, width, channels).
struct Position {
  int64_t batch, d, h, w, c;
};

template <typename Index>
ASSAY_DEVICE Position PositionOf(Index i, Index depth, Index height, Index width, Index channels) {
  const Index row = i / channels, plane = row / width, slice = plane / height;
  return {static_cast<int64_t>(slice / depth), static_cast<int64_t>(slice % depth),
          static_cast<int64_t>(plane % height), static_cast<int64_t>(row % width),
          static_cast<int64_t>(i % channels)};
}

ASSAY_DEVICE inline Position PositionOf(int64_t i, const Divisor& depth, const Divisor& height,
                                        const Divisor& width, const Divisor& channels) {
  const int64_t row = channels.Quotient(i), plane = width.Quotient(row);
  const int64_t slice = height.Quotient(plane), batch = depth.Quotient(slice);
  return {batch, depth.Rest(slice, batch), height.Rest(plane, slice), width.Rest(row, plane),
          channels.Rest(i, row)};
}

// For loops that are slow anyway: of element i of `count`. Divisions of 64 bits are slow on a GPU,
// so they are made only where the tensor is that large.
ASSAY_DEVICE inline Position PositionOf(int64_t i, int64_t count, int64_t depth, int64_t height,
                                        int64_t width, int64_t channels) {
  if (count > std::numeric_limits<int32_t>::max())
    return PositionOf<int64_t>(i, depth, height, width, channels);
  return PositionOf<uint32_t>(static_cast<uint32_t>(i), static_cast<uint32_t>(depth),
                              static_cast<uint32_t>(height), static_cast<uint32_t>(width),
                              static_cast<uint32_t>(channels));
}

// Where element i lies in a (rows, columns).
struct Cell {
  int64_t row, column;
};

ASSAY_DEVICE inline Cell CellOf(int64_t i, const Divisor& columns) {
  const int64_t row = columns.Quotient(i);
  return {row, columns.Rest(i, row)};
}

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_POSITION_H_
