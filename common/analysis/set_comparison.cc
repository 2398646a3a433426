#include "common/analysis/set_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "common/random.h"
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace assay::analysis {
namespace {

constexpr double kSecondsPerMinute = 60;
constexpr std::array kMeasures = {Measure::kMinutes, Measure::kEpochs, Measure::kEpochSeconds};

using Means = std::array<double, kMeasures.size()>;

struct Counted {
  size_t first = 0;  // of the runs by time
  size_t size = 0;
};

Counted CountedOf(const RunSet& set) {
  const size_t count = set.runs.size();
  if (set.is_weak || count < kComparedRunsMin) return {.first = 0, .size = count};
  return {.first = 1, .size = count - 1 - (set.failed_count > 0 ? 0 : 1)};
}

void SortByTime(std::vector<TimedRun>* runs) {
  std::stable_sort(runs->begin(), runs->end(),
                   [](const TimedRun& a, const TimedRun& b) { return a.minutes < b.minutes; });
}

Means MeansOf(std::span<const TimedRun> runs) {
  Means means = {};
  for (size_t i = 0; i < kMeasures.size(); ++i) {
    for (const TimedRun& run : runs)
      means[i] += ValueOf(run, kMeasures[i]);
    means[i] /= static_cast<double>(runs.size());
  }
  return means;
}

// Draws the set's runs again and takes their olympic means.
class Resampler {
 public:
  Resampler(const RunSet& set, const Stream& stream)
      : runs_(set.runs), counted_(CountedOf(set)), stream_(stream), sample_(set.runs.size()) {}

  Means Next() {
    for (TimedRun& run : sample_)
      run = runs_[stream_.Below(index_++, static_cast<uint32_t>(runs_.size()))];
    SortByTime(&sample_);
    return MeansOf(std::span(sample_).subspan(counted_.first, counted_.size));
  }

 private:
  const std::vector<TimedRun>& runs_;
  const Counted counted_;
  const Stream stream_;
  std::vector<TimedRun> sample_;
  uint64_t index_ = 0;
};

// The share of resamples to leave out at either end.
double TailOf(double confidence, size_t count_a, size_t count_b) {
  const double alpha = 1 - confidence;
  const auto least = static_cast<double>(std::min(count_a, count_b));
  const auto freedom = static_cast<double>(count_a + count_b - 2);
  const double t = boost::math::quantile(boost::math::students_t(freedom), 1 - alpha / 2);
  return boost::math::cdf(boost::math::normal(), -t * std::sqrt(least / (least - 1)));
}

// The value below which a share `p` of a rising list lies, between its neighbours.
double Quantile(const std::vector<double>& rising, double p) {
  const double place = p * static_cast<double>(rising.size() - 1);
  const auto below = static_cast<size_t>(place);
  if (below + 1 >= rising.size()) return rising.back();
  const double weight = place - static_cast<double>(below);
  return rising[below] * (1 - weight) + rising[below + 1] * weight;
}

void AddIntervals(const RunSet& a, const RunSet& b, const ComparisonOptions& options,
                  SetComparison* comparison) {
  Resampler resampler_a(a, Stream(options.seed, Purpose::kBootstrap, /*rank=*/1));
  Resampler resampler_b(b, Stream(options.seed, Purpose::kBootstrap, /*rank=*/2));
  std::array<std::vector<double>, kMeasures.size()> ratios;
  for (int i = 0; i < options.resamples; ++i) {
    const Means means_a = resampler_a.Next();
    const Means means_b = resampler_b.Next();
    for (size_t k = 0; k < kMeasures.size(); ++k)
      ratios[k].push_back(means_b[k] / means_a[k]);
  }
  const double tail = TailOf(options.confidence, a.runs.size(), b.runs.size());
  for (size_t k = 0; k < kMeasures.size(); ++k) {
    std::sort(ratios[k].begin(), ratios[k].end());
    comparison->measures[k].low = Quantile(ratios[k], tail);
    comparison->measures[k].high = Quantile(ratios[k], 1 - tail);
  }
}

}  // namespace

absl::string_view NameOf(Measure measure) {
  switch (measure) {
    case Measure::kMinutes:
      return "minutes";
    case Measure::kEpochs:
      return "epochs";
    case Measure::kEpochSeconds:
      return "epoch_seconds";
  }
  return "";
}

absl::string_view TextOf(Measure measure) {
  switch (measure) {
    case Measure::kMinutes:
      return "time to solution";
    case Measure::kEpochs:
      return "epochs to target";
    case Measure::kEpochSeconds:
      return "seconds per epoch";
  }
  return "";
}

std::optional<Measure> MeasureOf(absl::string_view name) {
  for (const Measure measure : kMeasures)
    if (NameOf(measure) == name) return measure;
  return std::nullopt;
}

double ValueOf(const TimedRun& run, Measure measure) {
  switch (measure) {
    case Measure::kMinutes:
      return run.minutes;
    case Measure::kEpochs:
      return run.epochs;
    case Measure::kEpochSeconds:
      return run.minutes * kSecondsPerMinute / run.epochs;
  }
  return 0;
}

std::vector<TimedRun> CountedRuns(const RunSet& set) {
  std::vector<TimedRun> runs = set.runs;
  SortByTime(&runs);
  const Counted counted = CountedOf(set);
  const auto first = runs.begin() + static_cast<ptrdiff_t>(counted.first);
  return {first, first + static_cast<ptrdiff_t>(counted.size)};
}

int SetComparison::insignificant_count() const {
  return static_cast<int>(
      std::count_if(measures.begin(), measures.end(),
                    [](const MeasureComparison& one) { return !one.is_significant(); }));
}

SetComparison CompareSets(const RunSet& a, const RunSet& b, const ComparisonOptions& options) {
  SetComparison comparison = {.a = a.name,
                              .b = b.name,
                              .runs_a = static_cast<int>(a.runs.size()),
                              .runs_b = static_cast<int>(b.runs.size()),
                              .confidence = options.confidence,
                              .seed = options.seed};
  if (a.runs.empty() || b.runs.empty()) return comparison;
  const Means means_a = MeansOf(CountedRuns(a));
  const Means means_b = MeansOf(CountedRuns(b));
  for (size_t k = 0; k < kMeasures.size(); ++k)
    comparison.measures.push_back({.measure = kMeasures[k],
                                   .a = means_a[k],
                                   .b = means_b[k],
                                   .ratio = means_b[k] / means_a[k]});
  if (std::min(comparison.runs_a, comparison.runs_b) >= kComparedRunsMin)
    AddIntervals(a, b, options, &comparison);
  return comparison;
}

}  // namespace assay::analysis
