// How often change points and prediction intervals alarm falsely, and how often they find what is
// there, on synthetic series of which the answer is known. The figures are printed; those of
// docs/benchmarks/history.md come from here.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/analysis/change_points.h"
#include "common/analysis/series.h"
#include "common/analysis/set_comparison.h"
#include "tests/analysis/synthetic_series.h"

namespace assay::analysis {
namespace {

using ::assay::testing::Draw;
using ::assay::testing::MakeSeries;
using ::assay::testing::Noise;
using ::assay::testing::SeriesShape;

constexpr int kSeries = 10'000;
constexpr double kStated = 0.001;

// What a rate of `stated` gives in `count` trials, exceeded with probability 1e-4 only.
double Allowed(double stated, double count) {
  return stated * count + 3.72 * std::sqrt(stated * count);
}

std::vector<double> EpochSeconds(const std::vector<SeriesPoint>& points) {
  std::vector<double> values;
  for (const SeriesPoint& point : points)
    values.push_back(point.epoch_seconds);
  return values;
}

class FalseAlarmTest : public ::testing::TestWithParam<Noise> {};

TEST_P(FalseAlarmTest, ChangePointsKeepTheirRateWhateverTheNoise) {
  for (const int set_count : {14, 30}) {
    int alarms = 0;
    for (uint64_t seed = 1; seed <= kSeries; ++seed) {
      const auto points = MakeSeries({.noise = GetParam(), .set_count = set_count}, seed);
      // Without the floor of 2 %, which alone would keep most alarms away.
      alarms += !FindChanges(EpochSeconds(points), {.ratio_min = 1.0001, .seed = seed}).empty();
    }
    std::printf("change points, %s, %d sets, no floor: %d of %d series\n",
                assay::testing::NameOf(GetParam()), set_count, alarms, kSeries);
    EXPECT_LE(alarms, Allowed(kStated, kSeries)) << "seeds 1 to " << kSeries;
  }
}

TEST_P(FalseAlarmTest, OfAPredictionAreRare) {
  for (const int earlier : {5, 10, 20}) {
    int outside = 0;
    for (uint64_t seed = 1; seed <= kSeries; ++seed) {
      const auto values =
          EpochSeconds(MakeSeries({.noise = GetParam(), .set_count = earlier + 1}, seed));
      const auto interval =
          PredictNext(std::span(values).first(static_cast<size_t>(earlier)), 0.999, 1e-4);
      outside += values.back() < interval->low || values.back() > interval->high;
    }
    std::printf("prediction, %s, %d earlier sets: %d of %d outside\n",
                assay::testing::NameOf(GetParam()), earlier, outside, kSeries);
    // Heavy tails are not what the interval is made for; the olympic selection leaves little of
    // them.
    const double rate = GetParam() == Noise::kHeavyTailed ? 3 * kStated : kStated;
    EXPECT_LE(outside, Allowed(rate, kSeries)) << "seeds 1 to " << kSeries;
  }
}

INSTANTIATE_TEST_SUITE_P(Noise, FalseAlarmTest,
                         ::testing::Values(Noise::kNormal, Noise::kSkewed, Noise::kHeavyTailed));

TEST(PowerTest, ChangePointsFindWhatIsThere) {
  constexpr int kTried = 200;
  std::printf("noise; ratio; sets before + after; found; within 1 set\n");
  for (const Noise noise : {Noise::kNormal, Noise::kSkewed, Noise::kHeavyTailed}) {
    for (const double ratio : {1.02, 1.03, 1.05, 1.10}) {
      for (const int side : {7, 10, 20}) {
        int found = 0;
        int near = 0;
        for (uint64_t seed = 1; seed <= kTried; ++seed) {
          const auto values = EpochSeconds(
              MakeSeries({.noise = noise, .set_count = 2 * side, .change_at = side, .ratio = ratio},
                         seed + 1'000'000));
          const auto changes = FindChanges(values, {.seed = seed});
          found += !changes.empty();
          near += !changes.empty() && std::abs(changes.front().first - side) <= 1;
        }
        std::printf("%s; %.2f; %d + %d; %.1f %%; %.1f %%\n", assay::testing::NameOf(noise), ratio,
                    side, side, 100.0 * found / kTried, 100.0 * near / kTried);
        if (ratio >= 1.05 && side >= 10 && noise == Noise::kNormal) {
          EXPECT_GT(found, kTried * 99 / 100);
        }
      }
    }
  }
}

// Two sets from one distribution: how often they are said to differ.
TEST(FalseDifferenceTest, IsAsRareAsTheConfidenceSays) {
  constexpr int kPairs = 500;
  for (const Noise noise : {Noise::kNormal, Noise::kSkewed, Noise::kHeavyTailed}) {
    for (const int runs : {5, 10}) {
      int minutes = 0;
      int seconds = 0;
      for (uint64_t seed = 1; seed <= kPairs; ++seed) {
        const Stream stream(seed, Purpose::kTest, /*rank=*/9);
        RunSet sets[2];
        uint64_t index = 0;
        for (RunSet& set : sets) {
          for (int i = 0; i < runs; ++i) {
            const double epochs = std::round(30 * Draw(Noise::kSkewed, 0.018, stream, index++));
            const double length = 10 * Draw(noise, 0.02, stream, index++);
            set.runs.push_back({.minutes = epochs * length / 60, .epochs = epochs});
          }
        }
        const auto comparison = CompareSets(sets[0], sets[1], {.resamples = 1000, .seed = seed});
        minutes += comparison.measures[0].is_significant();
        seconds += comparison.measures[2].is_significant();
      }
      std::printf("sets of %d runs, %s: minutes differ in %.1f %%, seconds per epoch in %.1f %%\n",
                  runs, assay::testing::NameOf(noise), 100.0 * minutes / kPairs,
                  100.0 * seconds / kPairs);
      EXPECT_LE(minutes, kPairs * 9 / 100);
      EXPECT_LE(seconds, kPairs * 9 / 100);
    }
  }
}

}  // namespace
}  // namespace assay::analysis
