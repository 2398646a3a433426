// Operations on two-dimensional maps: what a backend adds to backend.h for segmentation networks.
//
// The promises of backend.h hold here too. Maps are (B, H, W, C), channels last; convolution
// kernels are (k, k, in / groups, out). "C" tensors hold one number per channel. Maps and their
// gradients are of Backend::map_type(); all else, also logits, is real (Backend::real()) unless
// said otherwise.

#ifndef WORKER_ENGINE_MAPS_H_
#define WORKER_ENGINE_MAPS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

#include "common/log.h"
#include "worker/engine/backend.h"
#include "worker/engine/tensor.h"

namespace assay {

// A two-dimensional cross-correlation with as many zeros around the map as keep its extent at
// stride 1: dilation * (kernel - 1) / 2 on each side, at any stride (PyTorch's symmetric padding,
// not TensorFlow's SAME).
struct Conv2dShape {
  int64_t batch = 0;
  int64_t height = 0, width = 0;  // of the input
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t kernel = 1;  // odd
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t groups = 1;  // divides both channel counts; in_channels: depthwise

  int64_t pad() const { return dilation * (kernel - 1) / 2; }
  int64_t Output(int64_t extent) const { return (extent - 1) / stride + 1; }
  bool is_depthwise() const {
    return groups > 1 && groups == in_channels && groups == out_channels;
  }
  Shape x() const { return {batch, height, width, in_channels}; }
  Shape w() const { return {kernel, kernel, in_channels / groups, out_channels}; }
  Shape y() const { return {batch, Output(height), Output(width), out_channels}; }
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + shift, channel by channel, then max(0, y) if
// `relu`. The tensors: (C).
struct Normalisation {
  Tensor mean, variance, scale, shift;
  double epsilon = 0;
  bool relu = false;
};

// What NormaliseSums left, perhaps averaged over ranks. The tensors: (C).
struct ChannelSums {
  Tensor scale, shift;  // gradients of scale and shift
  double share = 0;     // makes means of them: 1 / elements of a channel
};

// How running moments follow those of a batch: running <- rate * moment + (1 - rate) * running,
// where the variance is multiplied by `unbiased` first. The tensors: (C).
struct RunningMoments {
  Tensor mean, variance;                  // of the batch
  Tensor running_mean, running_variance;  // moved
  double rate = 0;
  double unbiased = 1;
};

// Not thread-safe; belongs to its backend.
class MapOperations {
 public:
  virtual ~MapOperations() = default;

  // INVALID_ARGUMENT: no implementation for this shape. RESOURCE_EXHAUSTED: no memory.
  virtual absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution2d(
      const Conv2dShape& shape) = 0;

  // --- Batch normalisation, in pieces: between them ranks may average the (C) tensors ---

  // Mean and biased variance of each channel over everything else.
  virtual void ChannelMoments(const Tensor& x, const Tensor& mean, const Tensor& variance) = 0;
  // y from x; shapes equal, may be the same tensor.
  virtual void Normalise(const Normalisation& n, const Tensor& x, const Tensor& y) = 0;
  // y = normalised x + other, then ReLU; shapes equal, y none of the others.
  virtual void NormaliseAdd(const Normalisation& n, const Tensor& x, const Tensor& other,
                            const Tensor& y) {
    Normalisation plain = n;
    plain.relu = false;
    Normalise(plain, x, y);
    Combine(1, other, 1, y);
    if (n.relu) Relu(y);
  }
  // Whether that is one pass over memory.
  virtual bool adds_in_passing() const { return false; }
  // shift_gradient = sum of dy, and scale_gradient = sum of dy * (x - mean) / sqrt(variance +
  // epsilon), of each channel, where dy counts as 0 where ReLU has cut y to 0. What dy holds
  // afterwards is NormaliseBackward's affair.
  virtual void NormaliseSums(const Normalisation& n, const Tensor& x, const Tensor& y,
                             const Tensor& dy, const Tensor& scale_gradient,
                             const Tensor& shift_gradient) = 0;
  // After NormaliseSums on the same tensors, in place: dy, 0 where ReLU has cut, becomes
  //   scale / sqrt(variance + epsilon) * (dy - shift_mean - scale_mean * (x - mean) / sqrt(...)),
  // where the two means are `sums` times its share. With a share of 0 this is the gradient for
  // constant mean and variance.
  virtual void NormaliseBackward(const Normalisation& n, const Tensor& x, const ChannelSums& sums,
                                 const Tensor& dy) = 0;
  virtual void MoveRunning(const RunningMoments& m) {
    Combine(m.rate, m.mean, 1 - m.rate, m.running_mean);
    Combine(m.rate * m.unbiased, m.variance, 1 - m.rate, m.running_variance);
  }

  // --- Element by element: maps, or all real ---

  // y <- a * x + b * y; shapes equal. With b = 0 y need not hold numbers.
  virtual void Combine(double a, const Tensor& x, double b, const Tensor& y) = 0;
  // y = a + b, then max(0, y) if `relu`; shapes equal, y none of the others.
  virtual void Sum(const Tensor& a, const Tensor& b, bool relu, const Tensor& y) {
    Combine(1, a, 0, y);
    Combine(1, b, 1, y);
    if (relu) Relu(y);
  }
  // y <- max(0, y)
  virtual void Relu(const Tensor& y) = 0;
  // dy <- y > 0 ? dy : 0, with Relu's result y.
  virtual void ReluBackward(const Tensor& y, const Tensor& dy) = 0;
  // y = x in y's type: from real() to Backend::map_type() or back. Only where these differ.
  virtual void Convert(const Tensor& x, const Tensor& y) {
    CHECK(x.dtype == y.dtype) << "maps are real here";
  }

  // --- Between maps of different extents ---

  // Channels first, first + 1, ... of `all` become those of `part`. (B, H, W, any)
  virtual void PutChannels(const Tensor& part, int64_t first, const Tensor& all) = 0;
  // The reverse: `part` becomes those channels of `all`.
  virtual void TakeChannels(const Tensor& all, int64_t first, const Tensor& part) = 0;
  // sum(b, c) = factor * sum over h, w of x.   x: (B, H, W, C)   sum: (B, 1, 1, C)
  virtual void SpatialSum(const Tensor& x, double factor, const Tensor& sum) = 0;
  // y(b, h, w, c) = factor * x(b, c).   x: (B, 1, 1, C)   y: (B, H, W, C)
  virtual void SpatialSpread(const Tensor& x, double factor, const Tensor& y) = 0;

  // --- Loss ---

  // loss = mean over all pixels of weights[t] * -ln softmax(logits)[t], t the pixel's label, and
  // its gradient. The mean is over pixels, not divided by the weights (DeepCAM reference).
  //   logits, gradient: (B, H, W, C)   labels: uint8 (B, H, W), all below C   weights: (C)
  //   loss: (1)
  virtual void SoftmaxCrossEntropy(const Tensor& logits, const Tensor& labels,
                                   const Tensor& weights, const Tensor& gradient,
                                   const Tensor& loss) = 0;
  // The channel of the largest number, the first of equals.   labels: uint8 (B, H, W)
  virtual void Argmax(const Tensor& logits, const Tensor& labels) = 0;
  // Of each sample and class: the pixels that have it in both, and those that have it in either.
  //   labels, truth: uint8 (B, H, W), all below C   counts: float32 (2, B, C), exact up to 2^24
  virtual void CountClasses(const Tensor& labels, const Tensor& truth, const Tensor& counts) = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_MAPS_H_
