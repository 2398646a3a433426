// Layers whose results are not kept for the backward pass but computed a second time in it.

#ifndef WORKER_ENGINE_RECOMPUTED_LAYER_H_
#define WORKER_ENGINE_RECOMPUTED_LAYER_H_

#include <vector>

#include "worker/engine/sequence_layer.h"

namespace assay {

// As the sequence of its layers, in less memory and more time: Backward first runs Forward again,
// from the input, which is kept. Gradients are the same to the bit. The last layer, if it is not
// made of layers, does not run again: what follows needs its result anyway.
//
// The first layer may not work in place, and none may wait for other ranks. In time steps: Forward
// takes those of its layers, Backward twice as many.
class RecomputedLayer : public SequenceLayer {
 public:
  explicit RecomputedLayer(const Shape& input) : SequenceLayer(input) {}

  // How many of the layers run again.
  size_t repeated() const;

  LayerLiveness liveness() const override;
  Tensor Backward(const Tensor& x, const Tensor& dy, const Pass& pass) override;

 private:
  std::vector<LayerTimes> TimesOfLayers(const LayerTimes& all, bool has_backward) const override;
};

}  // namespace assay

#endif  // WORKER_ENGINE_RECOMPUTED_LAYER_H_
