// A part of a tensor (B, D, H, W, C) along D and H; the other axes whole.

#ifndef WORKER_ENGINE_BOX_H_
#define WORKER_ENGINE_BOX_H_

#include <array>
#include <cstdint>

#include "common/log.h"
#include "worker/engine/tensor.h"

namespace assay {

struct Box {
  std::array<int64_t, 2> begin = {};
  std::array<int64_t, 2> extent = {};

  // Of all samples of `whole`; 0 if the box is empty.
  int64_t elements(const Shape& whole) const {
    return whole[0] * extent[0] * extent[1] * whole[3] * whole[4];
  }
};

// Calls move(part of `whole`, part of `packed`) for each contiguous run of a box. `packed` has the
// box's elements in the same order.
template <typename Move>
void ForEachRun(const Tensor& whole, const Box& box, const Tensor& packed, const Move& move) {
  const Shape& shape = whole.shape;
  CHECK(packed.elements() == box.elements(shape) && packed.dtype == whole.dtype)
      << "packed=" << packed.shape.ToString() << " whole=" << shape.ToString();
  const int64_t line = shape[3] * shape[4], run = box.extent[1] * line;
  int64_t at = 0;
  for (int64_t sample = 0; sample < shape[0]; ++sample)
    for (int64_t d = box.begin[0]; d < box.begin[0] + box.extent[0]; ++d, at += run) {
      const int64_t first = ((sample * shape[1] + d) * shape[2] + box.begin[1]) * line;
      move(whole.Part(first, Shape{run}), packed.Part(at, Shape{run}));
    }
}

}  // namespace assay

#endif  // WORKER_ENGINE_BOX_H_
