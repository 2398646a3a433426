#include "worker/engine/layer.h"

#include <algorithm>
#include <cmath>

namespace assay {

double GlorotLimit(int64_t fan_in, int64_t fan_out) {
  return std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
}

bool IsTrained(Layer* layer) {
  const std::vector<Parameter*> parameters = layer->parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter* parameter) { return !parameter->is_frozen; });
}

LayerCost Layer::Cost(const Shape& input, bool wants_dx) {
  return ProductCost(this, input, wants_dx, /*multiply_adds=*/0);
}

LayerCost ProductCost(Layer* layer, const Shape& input, bool wants_dx, int64_t multiply_adds) {
  int64_t weights = 0;
  for (const Parameter* parameter : layer->parameters())
    weights += parameter->shape.elements();
  return CostOf({.inputs = input.elements(),
                 .outputs = layer->output().elements(),
                 .weights = weights,
                 .multiply_adds = multiply_adds,
                 .is_trained = IsTrained(layer),
                 .wants_dx = wants_dx});
}

}  // namespace assay
