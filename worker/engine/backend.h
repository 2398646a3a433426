// What a device must be able to do so that a model can train on it: memory and about twenty
// operations, each forward and backward.
//
// Promises of every backend:
//   - Tensors are contiguous and channels last: activations (B, D, H, W, C), convolution kernels
//     (k, k, k, in, out), dense kernels (in, out). A backend that prefers another layout keeps its
//     own packed copy of the weights.
//   - Work goes to one stream in call order; an operation may return before it is done. CopyOut and
//     Synchronize wait. Equal inputs give equal bits on the same machine and thread count.
//   - Gradients are overwritten, never added to: each parameter is used once in a step.
//   - Shapes are checked with CHECK: they come from our own layers. A failure of the underlying
//     library during an operation ends the process with ExitCode::kBackend.
// "real" below means the backend's own type of number: float32, or float64 in gradient checks.
// Not thread-safe: one thread uses a backend and everything made from it.

#ifndef WORKER_ENGINE_BACKEND_H_
#define WORKER_ENGINE_BACKEND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/random.h"
#include "worker/engine/box.h"
#include "worker/engine/engine_choice.h"
#include "worker/engine/tensor.h"

namespace assay {

// A three-dimensional cross-correlation with stride 1 and zero padding, axes (D, H, W).
struct ConvShape {
  int64_t batch = 0;
  std::array<int64_t, 3> input = {};
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t kernel = 0;                      // extent along each axis
  std::array<int64_t, 3> pad_before = {};  // zeros in front of each axis
  std::array<int64_t, 3> pad_after = {};

  int64_t output(size_t axis) const {
    return input[axis] + pad_before[axis] + pad_after[axis] - kernel + 1;
  }
  Shape x() const { return {batch, input[0], input[1], input[2], in_channels}; }
  Shape w() const { return {kernel, kernel, kernel, in_channels, out_channels}; }
  Shape y() const { return {batch, output(0), output(1), output(2), out_channels}; }
};

// The shape whose output is as large as its input ("SAME"): of the kernel - 1 zeros, the smaller
// half lies in front. Kernel 2 has none in front and one behind, as in TensorFlow.
ConvShape SameConv(int64_t batch, std::array<int64_t, 3> input, int64_t in_channels,
                   int64_t out_channels, int64_t kernel);

struct Normalisation;  // worker/engine/maps.h

// One convolution with whatever its backend prepared for it (plans, packed weights, workspace).
// Must not outlive its backend.
class Convolution {
 public:
  virtual ~Convolution() = default;
  // Must be called after the numbers in `w` changed and before they are used again.
  virtual void WeightsChanged() = 0;
  // y = x * w, without bias.
  virtual void Forward(const Tensor& x, const Tensor& w, const Tensor& y) = 0;
  // Chooses how ForwardNormalised, with or without ReLU, will compute: that may take long.
  virtual void PlanNormalised(bool relu) { static_cast<void>(relu); }
  // The same, normalised (MapOperations::Normalise), in one go. False: not offered or not planned,
  // y is as it was.
  virtual bool ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                                 const Tensor& y) {
    static_cast<void>(x), static_cast<void>(w), static_cast<void>(n), static_cast<void>(y);
    return false;
  }
  // dx from dy.
  virtual void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) = 0;
  // The same, normalised (MapOperations::Normalise), in one go: a transposed convolution in
  // evaluation. False: not offered, dx is as it was.
  virtual bool BackwardDataNormalised(const Tensor& dy, const Tensor& w, const Normalisation& n,
                                      const Tensor& dx) {
    static_cast<void>(dy), static_cast<void>(w), static_cast<void>(n), static_cast<void>(dx);
    return false;
  }
  // dw from x and dy.
  virtual void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) = 0;
};

// Convolution -> bias -> leaky ReLU -> max pooling 2x2x2 with stride 2, odd remainders dropped.
struct ConvPoolShape {
  ConvShape conv;
  double slope = 0;      // of the leaky ReLU
  bool wants_dx = true;  // whether Backward will be asked for the gradient of x
  bool is_map = false;   // whether x and dx are of Backend::map_type(); else real
  // Behind those of `conv` at each place of x, and zero; only without dx.
  int64_t empty_channels = 0;

  Shape x() const { return conv.x().WithLast(conv.in_channels + empty_channels); }
  Shape y() const {
    return {conv.batch, conv.output(0) / 2, conv.output(1) / 2, conv.output(2) / 2,
            conv.out_channels};
  }
};

// What both passes of a ConvPool work on.
struct ConvPoolTensors {
  Tensor x;       // x()
  Tensor w;       // conv.w()
  Tensor bias;    // (out_channels)
  Tensor y;       // y(), real or of Backend::map_type()
  Tensor code;    // uint8, y(): as Backend::PoolForward
  void* scratch;  // scratch_bytes(), 64-byte aligned; holds nothing between calls
};

struct ConvPoolGradients {
  Tensor dw;     // conv.w()
  Tensor dbias;  // (out_channels)
  Tensor dx;     // x(), or empty if nobody wants it
};

// One fused block. Equal to Convolution and pooling one after the other, but a backend may keep the
// unpooled result to itself: it is the largest tensor of a model, and seven eighths of its gradient
// are zeros. Must not outlive its backend.
class ConvPool {
 public:
  virtual ~ConvPool() = default;
  virtual size_t scratch_bytes() const = 0;
  // As Convolution::WeightsChanged.
  virtual void WeightsChanged() = 0;
  // Writes y and code.
  virtual void Forward(const ConvPoolTensors& tensors) = 0;
  // After Forward on the same tensors; dy: as y.
  virtual void Backward(const ConvPoolTensors& tensors, const Tensor& dy,
                        const ConvPoolGradients& gradients) = 0;
};

// f(x) = x > 0 ? x : parameter * x, or parameter * tanh(x).
struct Activation {
  enum class Kind { kLeakyRelu, kScaledTanh };
  Kind kind = Kind::kLeakyRelu;
  double parameter = 0.3;
};

// Which elements dropout keeps: element i where stream.Uniform(first_index + i) >= rate.
struct DropoutMask {
  Stream stream;
  uint64_t first_index;
  double rate;  // in [0, 1)
};

// One step of SGD in Keras' form; the learning rate is inside the velocity:
//   v <- momentum * v - learning_rate * (g + 2 * l2 * w);  w <- w + v
struct SgdStep {
  double learning_rate = 0;
  double momentum = 0;
  double l2 = 0;
};

class RankAverage;         // worker/engine/rank_average.h
class AdaptiveOperations;  // worker/engine/adaptive.h
class MapOperations;       // worker/engine/maps.h
class AsyncCopier;         // worker/engine/async_copier.h

class Backend {
 public:
  virtual ~Backend() = default;
  virtual absl::string_view name() const = 0;
  // The type of all real tensors: kFloat32 or kFloat64.
  virtual DType real() const = 0;
  // What maps (worker/engine/maps.h) between layers hold: real(), or kBfloat16 where that saves
  // memory traffic; operations on them compute in real() and round what they store.
  virtual DType map_type() const { return real(); }

  // Further sets of operations, or null where the backend lacks them: models and optimizers that
  // need one then answer INVALID_ARGUMENT. They live as long as the backend.
  virtual MapOperations* maps() { return nullptr; }
  virtual AdaptiveOperations* adaptive() { return nullptr; }

  // --- Memory ---

  // `bytes` zeroed bytes at a multiple of 64. RESOURCE_EXHAUSTED: not enough memory.
  virtual absl::StatusOr<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  // Copies `dst.bytes()` bytes from the host; `host` may be reused when the call returns.
  virtual void CopyIn(const void* host, const Tensor& dst) = 0;
  // Waits for the work before it, then copies `src.bytes()` bytes to the host.
  virtual void CopyOut(const Tensor& src, void* host) = 0;
  // Bytes of two tensors of equal size.
  virtual void Copy(const Tensor& src, const Tensor& dst) = 0;
  // Copies what `whole` (B, D, H, W, C) has in a box that is not empty to `packed`, whose elements
  // are those of the box in their order. Here: one contiguous run after the other.
  virtual void TakeBox(const Tensor& whole, const Box& box, const Tensor& packed);
  // The reverse.
  virtual void PutBox(const Tensor& packed, const Box& box, const Tensor& whole);
  virtual void Synchronize() = 0;
  // Whether tensors can be read and written at their addresses by the host. Where not, only CopyIn
  // and CopyOut reach them.
  virtual bool is_host_memory() const { return true; }
  // The work between the two is much the same each time that it is begun with this key: a backend
  // may replay a recording instead of issuing it anew. Results are the same. Sections do not nest;
  // CopyIn and CopyOut inside one are allowed but make it slow.
  virtual void BeginSection(int key) { static_cast<void>(key); }
  virtual void EndSection() {}
  // Averages over ranks and messages between them in the backend's own memory, or null where the
  // host has them.
  virtual RankAverage* rank_average() { return nullptr; }
  // For the convolutions made so far; no device: the backend does not choose.
  virtual EngineChoices engine_choices() const { return {}; }
  // Copies from the host on a copy stream, or null where there is nothing to copy them to.
  virtual AsyncCopier* async_copier() { return nullptr; }

  // --- Operations; all tensors real unless said otherwise ---

  // With how many channels a map that has so many is best stored: the others are zero.
  virtual int64_t StoredChannels(int64_t channels) const { return channels; }
  // y = ln(counts + 1). counts: int16, same shape as y; or y of map_type() with StoredChannels.
  virtual void Log1p(const Tensor& counts, const Tensor& y) = 0;

  // INVALID_ARGUMENT: no implementation for this shape. RESOURCE_EXHAUSTED: no memory.
  virtual absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution(const ConvShape& shape) = 0;

  // y = leaky(max over 2x2x2 of x + bias[c]), stride 2, odd remainders dropped. Equal to bias, then
  // activation, then pooling, because both are monotone. Of equal x the first in (d, h, w) order is
  // the maximum.
  //   x: (B, D, H, W, C)   bias: (C)   y: (B, D/2, H/2, W/2, C)
  //   code: uint8, shape of y: bits 0-2 position d*4 + h*2 + w of the maximum, bit 3: y > 0.
  virtual void PoolForward(const Tensor& x, const Tensor& bias, double slope, const Tensor& y,
                           const Tensor& code) = 0;
  // dx is zero except at each maximum; dbias is the sum of dx over all but channels.
  virtual void PoolBackward(const Tensor& dy, const Tensor& code, double slope, const Tensor& dx,
                            const Tensor& dbias) = 0;

  // The fusion of both. Here: one after the other. Errors of MakeConvolution.
  virtual absl::StatusOr<std::unique_ptr<ConvPool>> MakeConvPool(const ConvPoolShape& shape);

  // y = x w.  x: (B, I)   w: (I, O)   y: (B, O)
  virtual void DenseForward(const Tensor& x, const Tensor& w, const Tensor& y) = 0;
  virtual void DenseBackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) = 0;
  virtual void DenseBackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) = 0;

  // y <- f(y + bias).  y: (B, O)   bias: (O)
  virtual void ActivationForward(const Tensor& y, const Tensor& bias, const Activation& f) = 0;
  // dy <- dy * f' in place, recovered from the activation's output y; dbias = sum of dy over rows.
  virtual void ActivationBackward(const Tensor& y, const Activation& f, const Tensor& dy,
                                  const Tensor& dbias) = 0;

  // y <- y * scale, where scale becomes 1 / (1 - rate) for kept elements, else 0. Shapes equal.
  virtual void Dropout(const DropoutMask& mask, const Tensor& y, const Tensor& scale) = 0;
  // x <- x * factor, element by element.
  virtual void Multiply(const Tensor& factor, const Tensor& x) = 0;

  // loss = mean over all elements of (prediction - target)^2, and its gradient.
  //   loss: (1)   others: (B, O)
  virtual void SquaredError(const Tensor& prediction, const Tensor& target, const Tensor& gradient,
                            const Tensor& loss) = 0;

  // parameters, gradients, velocity: equal shapes.
  virtual void Sgd(const SgdStep& step, const Tensor& parameters, const Tensor& gradients,
                   const Tensor& velocity) = 0;
  // sum: (1)
  virtual void SumOfSquares(const Tensor& x, const Tensor& sum) = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKEND_H_
