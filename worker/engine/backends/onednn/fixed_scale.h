// A normalisation with fixed statistics as one multiplication and one addition.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_FIXED_SCALE_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_FIXED_SCALE_H_

#include <cmath>
#include <cstddef>
#include <vector>

#include "worker/engine/maps.h"

namespace assay {

// y = x * slope + offset, channel by channel; without the ReLU.
struct FixedScale {
  FixedScale() = default;
  explicit FixedScale(const Normalisation& n) {
    for (size_t c = 0; c < static_cast<size_t>(n.mean.elements()); ++c) {
      const double deviation = std::sqrt(double{n.variance.As<float>()[c]} + n.epsilon);
      const double factor = double{n.scale.As<float>()[c]} / deviation;
      slope.push_back(static_cast<float>(factor));
      offset.push_back(static_cast<float>(double{n.shift.As<float>()[c]} -
                                          double{n.mean.As<float>()[c]} * factor));
    }
  }

  std::vector<float> slope, offset;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_FIXED_SCALE_H_
