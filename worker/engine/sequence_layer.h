// Layers one after the other.

#ifndef WORKER_ENGINE_SEQUENCE_LAYER_H_
#define WORKER_ENGINE_SEQUENCE_LAYER_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/layer.h"

namespace assay {

class RecomputedLayer;

// Layers from `begin` up to, but without, `end` of a sequence.
struct LayerRange {
  size_t begin = 0;
  size_t end = 0;
};

// Without layers: the identity. Where parameters are frozen, none of them behind one that is not,
// Backward ends before the layers whose gradients nobody needs.
class SequenceLayer : public Layer, public AddingLayer {
 public:
  explicit SequenceLayer(const Shape& input) : input_(input) {}

  // Before Plan only.
  void Add(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }
  bool is_identity() const { return layers_.empty(); }
  size_t size() const { return layers_.size(); }
  Layer* layer(size_t index) const { return layers_[index].get(); }

  // From the next Plan on the layers of each of `ranges`, which ascend and do not overlap, are one
  // RecomputedLayer. Those of the last call are first what they were.
  void Recompute(const std::vector<LayerRange>& ranges);

  Shape output() const override { return layers_.empty() ? input_ : layers_.back()->output(); }
  std::vector<Parameter*> parameters() override;
  std::vector<Buffer*> buffers() override;
  void ParametersChanged() override;
  LayerLiveness liveness() const override;
  std::vector<SequenceLayer*> sequences() override { return {this}; }
  absl::Status Plan(LayerMemory memory, bool wants_dx) override;
  Tensor Forward(const Tensor& x, const Pass& pass) override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;
  AddingLayer* adding() override;
  void ForwardAdded(const Tensor& x, const Pass& pass, const Addition& addition) override;
  LayerCost Cost(const Shape& input, bool wants_dx) override;

 protected:
  // When each layer works, if all together do so at `all`.
  virtual std::vector<LayerTimes> TimesOfLayers(const LayerTimes& all, bool has_backward) const;
  // Passes `x` through the first `count` layers; keeps the inputs of all that it reaches.
  Tensor ForwardThrough(size_t count, const Tensor& x, const Pass& pass);
  // What the first layer read in the last Forward.
  const Tensor& first_input() const { return inputs_.front(); }

 private:
  size_t FirstTrained() const;

  const Shape input_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<RecomputedLayer*> recomputed_;  // those of layers_ that Recompute made
  std::vector<Tensor> inputs_;                // of each layer in the last Forward
};

}  // namespace assay

#endif  // WORKER_ENGINE_SEQUENCE_LAYER_H_
