#include "common/analysis/prediction.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/analysis/statistics.h"
#include <boost/math/distributions/students_t.hpp>

namespace assay::analysis {

std::optional<PredictionInterval> PredictNext(std::span<const double> earlier, double confidence,
                                              double spread_min) {
  if (earlier.size() < 2) return std::nullopt;
  std::vector<double> logs;
  for (const double value : earlier)
    logs.push_back(std::log(value));
  const Moments moments = *MomentsOf(logs);
  const double count = moments.count;
  const double t =
      boost::math::quantile(boost::math::students_t(count - 1), 1 - (1 - confidence) / 2);
  const double reach = t * std::max(*moments.sd, spread_min) * std::sqrt(1 + 1 / count);
  return PredictionInterval{.low = std::exp(moments.mean - reach),
                            .high = std::exp(moments.mean + reach)};
}

}  // namespace assay::analysis
