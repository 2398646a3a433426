#include "worker/engine/layer_cost.h"

namespace assay {

LayerCost CostOf(const LayerWork& work) {
  const double forward_flops = 2 * static_cast<double>(work.multiply_adds);
  const int gradients = (work.is_trained ? 1 : 0) + (work.wants_dx ? 1 : 0);
  int64_t backward = gradients > 0 ? work.outputs : 0;
  backward += gradients * (work.inputs + work.weights);
  return {.flops = {.forward = forward_flops, .backward = gradients * forward_flops},
          .traffic = {.forward = static_cast<double>(work.inputs + work.weights + work.outputs),
                      .backward = static_cast<double>(backward)}};
}

}  // namespace assay
