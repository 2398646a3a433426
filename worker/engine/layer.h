// A layer: owns its parameters' descriptions and what its backward pass needs from its forward.
//
// A model is a list of layers; forward goes through it once, backward goes through it reversed.

#ifndef WORKER_ENGINE_LAYER_H_
#define WORKER_ENGINE_LAYER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "common/random.h"
#include "worker/engine/arena.h"
#include "worker/engine/tensor.h"

namespace assay {

// One named tensor that training changes.
struct Parameter {
  std::string name;        // as "conv1/kernel"
  Shape shape;             // of value and gradient
  double init_limit = 0;   // initial values are uniform in [-init_limit, init_limit),
  double init_stddev = 0;  // or, if this is not 0, normal with this standard deviation,
  double init_value = 0;   // added to this
  double l2 = 0;           // the loss includes l2 * sum(value^2)
  bool is_frozen = false;  // training changes it no more (Model::FreezeThrough)
  Tensor value, gradient;  // set when the model commits
};

// Numbers that a layer keeps between steps and that no gradient changes, such as running means.
struct Buffer {
  std::string name;
  Shape shape;
  double init_value = 0;
  Tensor value;  // set when the model commits
};

// sqrt(6 / (fan_in + fan_out)): Glorot and Bengio, "Understanding the difficulty of training deep
// feedforward neural networks", 2010. For a convolution a fan is receptive field times channels.
double GlorotLimit(int64_t fan_in, int64_t fan_out);

// When a layer works and until when others use what it leaves, in numbered time steps: each layer
// that is not made of layers has one for Forward and one for Backward, in the order in which they
// run. Activations share memory by these lifetimes.
struct LayerTimes {
  static constexpr int64_t kFirstBackward = int64_t{1} << 40;  // behind every Forward

  int64_t forward = 0;                          // the first time step of Forward
  int64_t backward = kFirstBackward;            // the first time step of Backward
  int64_t result_until = Lifetime::kForever;    // others read Forward's result, in either pass
  int64_t gradient_until = Lifetime::kForever;  // others use Backward's
};

// Where a layer reserves memory while its model is put together. What a layer writes and reads in
// one step only is best reserved for the time that it is needed: then it shares memory.
struct LayerMemory {
  Arena* activations;
  size_t* scratch_bytes;     // the largest wish of any layer
  bool has_backward = true;  // false: Backward is never called, no gradient needs memory
  LayerTimes times;
  bool has_result = true;  // false: somebody else calls another than Forward, and has the memory

  // Asks for memory that is this layer's own only during each call of Forward or Backward.
  void WantScratch(size_t bytes) { *scratch_bytes = std::max(*scratch_bytes, bytes); }
  // Reserves the result of a layer with one time step, which needs it for its own Backward too if
  // `is_read_backward`.
  void ReserveResult(const Shape& shape, DType dtype, bool is_read_backward, Tensor* result) {
    if (!has_result) return;
    const int64_t own = is_read_backward && has_backward ? times.backward : times.forward;
    activations->ReserveShared(shape, dtype, {times.forward, std::max(own, times.result_until)},
                               result);
  }
  // Reserves what Backward of a layer with one time step returns.
  void ReserveGradient(const Shape& shape, DType dtype, Tensor* gradient) {
    activations->ReserveShared(shape, dtype, {times.backward, times.gradient_until}, gradient);
  }
};

// The ranks that normalise their batches together.
class GroupMean {
 public:
  virtual ~GroupMean() = default;
  // Replaces each number by its mean over the ranks of the group; all call it in the same order.
  // `values` lies in the host's memory, or where is_on_device() in the backend's.
  // Ends the process if a rank is gone.
  virtual void Average(const Tensor& values) = 0;
  // Whether the ranks' devices take the mean by themselves.
  virtual bool is_on_device() const { return false; }
  // How many ranks there are in the group.
  virtual int size() const = 0;
};

// Is told during a backward pass which gradients will not be written again in it.
class GradientObserver {
 public:
  virtual ~GradientObserver() = default;
  // Their kernels have all been started. A parameter may be told of more than once, frozen ones
  // too.
  virtual void Final(std::span<Parameter* const> parameters) = 0;
};

// What a pass needs to know besides tensors.
struct Pass {
  bool is_training = false;
  uint64_t step = 0;                              // within the epoch
  Stream dropout = Stream(0, Purpose::kDropout);  // of (seed, rank, epoch); unused in evaluation
  void* scratch = nullptr;                        // as large as the largest wish
  GroupMean* group = nullptr;                     // null: each rank normalises by itself
  GradientObserver* observer = nullptr;           // of Backward; null: nobody wants to know
};

// Floating point operations of one batch, as the model defines them: those of convolutions and
// matrix products, a multiply-add counted as two, padding counted as work. What a backend leaves
// out because it is zero counts; what it computes twice does not.
struct LayerFlops {
  double forward = 0;
  double backward = 0;

  LayerFlops& operator+=(const LayerFlops& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

// Of a product of an input and `weights` with so many multiply-adds. Its gradients of weights, if
// they are not frozen, and of inputs, if somebody wants them, cost as much each.
inline LayerFlops ProductFlops(int64_t multiply_adds, const Parameter& weights,
                               bool has_input_gradient) {
  const double forward = 2 * static_cast<double>(multiply_adds);
  const int gradients = (weights.is_frozen ? 0 : 1) + (has_input_gradient ? 1 : 0);
  return {.forward = forward, .backward = gradients * forward};
}

// Numbers that one batch moves through memory, if nothing stays on the chip between layers and each
// layer reads what it is given once and writes its result once.
struct LayerTraffic {
  double forward = 0;
  double backward = 0;

  LayerTraffic& operator+=(const LayerTraffic& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

// What is added to a layer's result as it is written, and where it goes: y = result + other, then
// max(0, y) if `relu`.
struct Addition {
  Tensor other;
  bool relu = false;
  Tensor y;
};

// Which passes of a layer return what they were given.
struct InPlace {
  bool forward = false;
  bool backward = false;
};

class Layer {
 public:
  virtual ~Layer() = default;

  // Shape of Forward's result, batch first.
  virtual Shape output() const = 0;
  // Kernels before biases; pointers live as long as the layer.
  virtual std::vector<Parameter*> parameters() { return {}; }
  // As for parameters.
  virtual std::vector<Buffer*> buffers() { return {}; }
  // How many time steps (LayerTimes) Forward takes, and Backward.
  virtual int64_t time_steps() const { return 1; }
  // Whether Forward's result is `x`, and Backward's `dy`, overwritten.
  virtual InPlace in_place() const { return {}; }
  // Reserves results and whatever backward needs. `wants_dx`: Backward will be asked for dx.
  virtual absl::Status Plan(LayerMemory memory, bool wants_dx) = 0;
  // Once the model has its memory.
  virtual LayerFlops flops() const { return {}; }
  // Of one batch of shape `input`, where Backward is asked for dx if `wants_dx`. Here: Forward
  // reads x and the parameters and writes y. Backward reads dy; for the parameters' gradients x;
  // for dx the parameters; and writes what it computes. There is none where nobody needs it.
  virtual LayerTraffic Traffic(const Shape& input, bool wants_dx);
  // Parameters were frozen (Parameter::is_frozen), none of them behind one that is not. From now on
  // Backward is called only where there is a parameter that is not, in this layer or before it, and
  // asked for dx only if `wants_dx`; never again otherwise.
  virtual void LimitBackward(bool wants_dx) { static_cast<void>(wants_dx); }
  // The numbers in the parameters changed.
  virtual void ParametersChanged() {}

  // Computes from `x`; the result is there as long as Plan was told, or until the next Forward.
  virtual Tensor Forward(const Tensor& x, const Pass& pass) = 0;
  // Whether training may call ForwardAdded instead. After Plan.
  virtual bool can_add() const { return false; }
  // As Forward, but nothing is left in the layer's own result.
  virtual void ForwardAdded(const Tensor& x, const Pass& pass, const Addition& addition) {
    static_cast<void>(x), static_cast<void>(pass), static_cast<void>(addition);
  }
  // After Forward on the same `x`: overwrites parameter gradients and may overwrite `dy`. Returns
  // the gradient of `x`, or an empty Tensor if it was planned without.
  virtual Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) = 0;
};

// To be called by what calls a layer's Backward, right after it.
inline void TellOfGradients(Layer* layer, const Pass& pass) {
  if (pass.observer != nullptr) pass.observer->Final(layer->parameters());
}

// Whether training changes any parameter of a layer.
bool IsTrained(Layer* layer);

// When each of some layers one after the other works, of which all together do so at `outer`.
std::vector<LayerTimes> TimesOfSequence(std::span<const std::unique_ptr<Layer>> layers,
                                        const LayerTimes& outer, bool has_backward);

// Layer::Traffic of layers one after the other.
LayerTraffic TrafficOfSequence(std::span<const std::unique_ptr<Layer>> layers, Shape input,
                               bool wants_dx);

// Layer::LimitBackward for layers one after the other, of which the first is asked for dx if
// `wants_dx`. Returns how many of the first need no Backward any more.
size_t LimitSequence(std::span<const std::unique_ptr<Layer>> layers, bool wants_dx);

}  // namespace assay

#endif  // WORKER_ENGINE_LAYER_H_
