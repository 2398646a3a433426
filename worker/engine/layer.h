// A layer: owns its parameters' descriptions and what its backward pass needs from its forward.
//
// A model is a list of layers; forward goes through it once, backward goes through it reversed.

#ifndef WORKER_ENGINE_LAYER_H_
#define WORKER_ENGINE_LAYER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/layer_cost.h"
#include "worker/engine/layer_memory.h"
#include "worker/engine/parameter.h"
#include "worker/engine/pass.h"
#include "worker/engine/tensor.h"

namespace assay {

class AddingLayer;
class SequenceLayer;

// Most layers say what they compute and no more; what they cost, how they share memory and what
// they can do in one go with their neighbours is said where it is not the usual.
class Layer {
 public:
  virtual ~Layer() = default;

  // Shape of Forward's result, batch first.
  virtual Shape output() const = 0;
  // Kernels before biases; pointers live as long as the layer.
  virtual std::vector<Parameter*> parameters() { return {}; }
  // As for parameters.
  virtual std::vector<Buffer*> buffers() { return {}; }
  // The numbers in the parameters changed.
  virtual void ParametersChanged() {}

  virtual LayerLiveness liveness() const { return {}; }
  // Reserves results and whatever backward needs. `wants_dx`: Backward will be asked for dx. May be
  // called again, for another arena: the last call counts.
  virtual absl::Status Plan(LayerMemory memory, bool wants_dx) = 0;

  // Computes from `x`; the result is there as long as Plan was told, or until the next Forward.
  virtual Tensor Forward(const Tensor& x, const Pass& pass) = 0;
  // After Forward on the same `x`: overwrites parameter gradients and may overwrite `dy`. Returns
  // the gradient of `x` if Pass::wants_dx; else, or if it was planned without, an empty Tensor or
  // one of unspecified content. Is not called where neither that nor any parameter's is wanted.
  virtual Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) = 0;

  // This layer as one that adds in training as it writes; null if it cannot. After Plan.
  virtual AddingLayer* adding() { return nullptr; }
  // The lists of layers inside of this one any of whose parts may be recomputed. Before Plan.
  virtual std::vector<SequenceLayer*> sequences() { return {}; }
  // Of one batch of shape `input`, where Backward is asked for dx if `wants_dx`. Here: of a layer
  // without products.
  virtual LayerCost Cost(const Shape& input, bool wants_dx);
};

// What is added to a layer's result as it is written, and where it goes: y = result + other, then
// max(0, y) if `relu`.
struct Addition {
  Tensor other;
  bool relu = false;
  Tensor y;
};

class AddingLayer {
 public:
  virtual ~AddingLayer() = default;
  // As Layer::Forward, but nothing is left in the layer's own result.
  virtual void ForwardAdded(const Tensor& x, const Pass& pass, const Addition& addition) = 0;
};

// Whether training changes any parameter of a layer.
bool IsTrained(Layer* layer);

// Layer::Cost of a layer whose Forward multiplies its input with its parameters.
LayerCost ProductCost(Layer* layer, const Shape& input, bool wants_dx, int64_t multiply_adds);

}  // namespace assay

#endif  // WORKER_ENGINE_LAYER_H_
