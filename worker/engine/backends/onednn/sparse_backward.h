// The backward pass of convolution and pooling that does only the eighth of the multiplications
// whose factor is not zero.
//
// Pooling passes a gradient to one of eight outputs of the convolution. For each window and output
// channel there is one gradient g and one position; its k^3 * C inputs lie in k^2 segments that are
// contiguous in a padded channels-last input. The weight gradient is the sum of g times these
// segments, the input gradient the sum of g times the weights, at these segments. Same result as
// the dense passes but for the order of sums. AVX-512 only.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_BACKWARD_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_BACKWARD_H_

#include <cstddef>
#include <cstdint>

#include "worker/engine/backend.h"
#include "worker/engine/backends/onednn/padded_input.h"

namespace assay {

// The gradient of y, as PoolForward's code spreads it.
struct PooledGradient {
  const float* dy;      // (B, D/2, H/2, W/2, out)
  const uint8_t* code;  // same shape
  float slope;
};

// A plan for one shape. Thread-safe once made; results do not depend on the number of threads.
class SparseBackward {
 public:
  // Whether this machine and the loops can do `conv`: AVX-512, even extents, output channels a
  // multiple of 8, and input channels 2 to 4 (kernel 3 or 2), or 8, 16, 32 or a multiple of 64.
  static bool CanDo(const ConvShape& conv);

  explicit SparseBackward(const ConvShape& conv);

  const PaddedInput& input() const { return input_; }
  // Weights and their gradients are (out, k^2 segments, segment_stride()): of each segment the
  // k * in weights (kW, in) in front, then zeros.
  int64_t segment_stride() const { return segment_vectors_ * PaddedInput::kLanes; }
  size_t weight_floats() const;

  // dw and dbias (out) from the interleaved padded input.
  void Weights(const float* x, const PooledGradient& gradient, float* dw, float* dbias) const;
  // dx, interleaved and padded, from weights.
  void Data(const float* w, const PooledGradient& gradient, float* dx) const;

 private:
  struct Loops;

  PaddedInput input_;
  int64_t segment_vectors_;
  const Loops* loops_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_BACKWARD_H_
