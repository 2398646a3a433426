// Where an element of a tensor lies, for kernels.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_POSITION_H_
#define WORKER_ENGINE_BACKENDS_CUDA_POSITION_H_

#include <cstdint>
#include <limits>

#include "worker/engine/bfloat16.h"

namespace assay::cuda {

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

// Of element i of `count`. Divisions of 64 bits are slow on a GPU, so they are made only where the
// tensor is that large.
ASSAY_DEVICE inline Position PositionOf(int64_t i, int64_t count, int64_t depth, int64_t height,
                                        int64_t width, int64_t channels) {
  if (count > std::numeric_limits<int32_t>::max())
    return PositionOf<int64_t>(i, depth, height, width, channels);
  return PositionOf<uint32_t>(static_cast<uint32_t>(i), static_cast<uint32_t>(depth),
                              static_cast<uint32_t>(height), static_cast<uint32_t>(width),
                              static_cast<uint32_t>(channels));
}

// Where element i of `count` lies in a (rows, columns).
struct Cell {
  int64_t row, column;
};

ASSAY_DEVICE inline Cell CellOf(int64_t i, int64_t count, int64_t columns) {
  const Position p = PositionOf(i, count, 1, 1, 1, columns);
  return {p.batch, p.c};
}

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_POSITION_H_
