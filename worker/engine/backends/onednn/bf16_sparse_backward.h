// SparseBackward with factors in bfloat16, two to a multiplication, added up in float32.
//
// The weight gradient takes two windows at a time: their inputs are shuffled into pairs. The input
// gradient takes two output channels whose maxima lie at the same position of a window: their
// weights are shuffled into pairs, and the sums stay in registers until all channels with this
// position are done. Needs RequireAvx512Bf16.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_BF16_SPARSE_BACKWARD_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_BF16_SPARSE_BACKWARD_H_

#include <cstddef>
#include <cstdint>

#include "worker/engine/backend.h"
#include "worker/engine/backends/onednn/padded_input.h"
#include "worker/engine/backends/onednn/sparse_backward.h"
#include "worker/engine/bfloat16.h"

namespace assay {

// A plan for one shape. Thread-safe once made; results do not depend on the number of threads.
class Bf16SparseBackward {
 public:
  // As SparseBackward::CanDo, and the same shapes.
  static bool CanDo(const ConvShape& conv);

  explicit Bf16SparseBackward(const ConvShape& conv);

  const PaddedInput& input() const { return input_; }
  // Weight gradients are (out, k^2 segments, segment_stride()) as SparseBackward's. Packed weights
  // have as many numbers, rounded and in the order of ShuffledPacking.
  int64_t segment_stride() const { return segment_vectors_ * PaddedInput::kLanes; }
  size_t weight_count() const;

  // w: (k, k, k, in, out). Leaves the gaps between segments of `packed` alone: they must be 0.
  void Pack(const float* w, Bfloat16* packed) const;
  // dw and dbias (out) from the input that PadInterleavedBf16 made.
  void Weights(const Bfloat16* x, const PooledGradient& gradient, float* dw, float* dbias) const;
  // dx, interleaved and padded, in float32.
  void Data(const Bfloat16* packed, const PooledGradient& gradient, float* dx) const;

 private:
  struct Loops;

  PaddedInput input_;
  int64_t segment_vectors_;
  const Loops* loops_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_BF16_SPARSE_BACKWARD_H_
