#include "common/rules/score_interval.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/random.h"

namespace assay::rules {
namespace {

std::vector<double> CountingMinutes(const Scoring& scoring, std::span<const RunScore> runs) {
  std::vector<double> minutes;
  for (const RunScore& run : runs) {
    if (HasTime(scoring.counts, run)) minutes.push_back(*run.run_ms / kMsPerMinute);
  }
  return minutes;
}

// Of a rising list, without its first value and its last `drop_last`.
double InnerMean(const std::vector<double>& rising, size_t drop_last) {
  double sum = 0;
  for (size_t i = 1; i + drop_last < rising.size(); ++i)
    sum += rising[i];
  return sum / static_cast<double>(rising.size() - 1 - drop_last);
}

// The value below which a share `p` of a rising list lies.
double Quantile(const std::vector<double>& rising, double p) {
  const double last = static_cast<double>(rising.size() - 1);
  return rising[static_cast<size_t>(std::lround(p * last))];
}

}  // namespace

std::optional<ScoreInterval> BootstrapInterval(const Scoring& scoring,
                                               std::span<const RunScore> runs,
                                               const IntervalOptions& options) {
  const std::vector<double> minutes = CountingMinutes(scoring, runs);
  const size_t counted = Score(scoring, runs).counted.size();
  if (counted < 1 || minutes.size() < 3) return std::nullopt;
  // The slowest is left out too, unless a run that failed stands for it.
  const size_t drop_last = minutes.size() - 1 - counted;
  const Stream stream(options.seed, Purpose::kBootstrap);
  const auto count = static_cast<uint32_t>(minutes.size());
  std::vector<double> means;
  std::vector<double> sample(minutes.size());
  uint64_t index = 0;
  for (int i = 0; i < options.resamples; ++i) {
    for (double& value : sample)
      value = minutes[stream.Below(index++, count)];
    std::sort(sample.begin(), sample.end());
    means.push_back(InnerMean(sample, drop_last));
  }
  std::sort(means.begin(), means.end());
  const double tail = (1 - options.confidence) / 2;
  return ScoreInterval{.low_minutes = Quantile(means, tail),
                       .high_minutes = Quantile(means, 1 - tail),
                       .confidence = options.confidence,
                       .resamples = options.resamples};
}

}  // namespace assay::rules
