// Series of sets that were never run, with noise of a known kind: what change points and prediction
// intervals are tried on.

#ifndef TESTS_ANALYSIS_SYNTHETIC_SERIES_H_
#define TESTS_ANALYSIS_SYNTHETIC_SERIES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/analysis/series.h"
#include "common/random.h"

namespace assay::testing {

enum class Noise { kNormal, kSkewed, kHeavyTailed };

inline const char* NameOf(Noise noise) {
  switch (noise) {
    case Noise::kNormal:
      return "normal";
    case Noise::kSkewed:
      return "log-normal";
    case Noise::kHeavyTailed:
      return "Student t, 3 degrees";
  }
  return "";
}

// One value of mean level 1 (for the skewed: median 1). `spread`: its coefficient of variation, or
// the scale of what has heavy tails. Uses four indices of the stream from 4 * index on.
inline double Draw(Noise noise, double spread, const Stream& stream, uint64_t index) {
  const auto normal = [&](uint64_t part) {
    return static_cast<double>(stream.Normal(4 * index + part));
  };
  switch (noise) {
    case Noise::kNormal:
      return std::max(0.05, 1 + spread * normal(0));
    case Noise::kSkewed:  // the longer ones are much longer
      return std::exp(spread * 3 * normal(0));
    case Noise::kHeavyTailed: {
      const double chi = normal(1) * normal(1) + normal(2) * normal(2) + normal(3) * normal(3);
      return std::exp(std::min(2.0, std::max(-2.0, spread * normal(0) / std::sqrt(chi / 3))));
    }
  }
  return 1;
}

// Sets of ten runs each, in order; from set `change_at` on `ratio` times as much.
struct SeriesShape {
  Noise noise = Noise::kNormal;
  double spread = 0.02;  // of a run's seconds per epoch: as in the published sets
  int set_count = 30;
  int run_count = 10;
  int change_at = 1 << 30;
  double ratio = 1;
};

inline std::vector<analysis::SeriesPoint> MakeSeries(const SeriesShape& shape, uint64_t seed) {
  const Stream stream(seed, Purpose::kTest);
  std::vector<analysis::SeriesPoint> points;
  uint64_t index = 0;
  for (int i = 0; i < shape.set_count; ++i) {
    analysis::RunSet set = {.name = "e-" + std::to_string(i + 1)};
    for (int k = 0; k < shape.run_count; ++k) {
      const double level = i >= shape.change_at ? shape.ratio : 1;
      const double epochs = std::round(30 * Draw(Noise::kSkewed, 0.018, stream, index++));
      const double seconds = 10 * level * Draw(shape.noise, shape.spread, stream, index++);
      set.runs.push_back({.minutes = epochs * seconds / 60, .epochs = epochs});
    }
    points.push_back(*analysis::PointOf(set, 1000 * i));
  }
  return points;
}

}  // namespace assay::testing

#endif  // TESTS_ANALYSIS_SYNTHETIC_SERIES_H_
