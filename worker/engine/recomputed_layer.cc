#include "worker/engine/recomputed_layer.h"

namespace assay {

size_t RecomputedLayer::repeated() const {
  return layer(size() - 1)->liveness().time_steps > 1 ? size() : size() - 1;
}

LayerLiveness RecomputedLayer::liveness() const {
  LayerLiveness all = SequenceLayer::liveness();
  all.time_steps *= 2;
  return all;
}

// The second Forward fills the first half of Backward's time steps.
std::vector<LayerTimes> RecomputedLayer::TimesOfLayers(const LayerTimes& all,
                                                       bool has_backward) const {
  if (!has_backward) return SequenceLayer::TimesOfLayers(all, has_backward);
  const int64_t steps = SequenceLayer::liveness().time_steps;
  const int64_t delay = all.backward - all.forward;
  // Nobody outside reads what the second Forward results in.
  std::vector<LayerTimes> times = SequenceLayer::TimesOfLayers(
      {.forward = all.backward,
       .backward = all.backward + steps,
       .result_until = all.backward + steps - 1,
       .gradient_until = all.gradient_until,
       .repetition = {.delay = delay, .first_result_until = all.result_until}},
      has_backward);
  if (repeated() == size()) return times;
  times.back().forward -= delay;
  times.back().result_until = all.result_until;
  times.back().repetition = {};
  return times;
}

Tensor RecomputedLayer::Backward(const Tensor& x, const Tensor& dy, const Pass& pass) {
  Pass again = pass;
  again.is_repeated = true;
  again.observer = nullptr;
  again.watch = nullptr;
  ForwardThrough(repeated(), first_input(), again);
  return SequenceLayer::Backward(x, dy, pass);
}

}  // namespace assay
