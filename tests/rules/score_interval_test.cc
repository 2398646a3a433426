#include "common/rules/score_interval.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/random.h"
#include "common/rules/registry.h"
#include "tests/rules/sample_runs.h"

namespace assay::rules {
namespace {

using ::assay::testing::Runs;
using ::assay::testing::V3;

std::vector<double> NormalMinutes(uint64_t seed, int count, double deviation) {
  const Stream stream(seed, Purpose::kTest);
  std::vector<double> minutes;
  for (int i = 0; i < count; ++i)
    minutes.push_back(30 + deviation * stream.Normal(static_cast<uint64_t>(i)));
  return minutes;
}

TEST(ScoreIntervalTest, TheSameRunsGiveTheSameInterval) {
  const std::vector<RunScore> runs = Runs({20, 22, 21, 25, 24, 23, 22, 21, 20, 26});

  const auto first = BootstrapInterval(V3().scoring(), runs, {});
  const auto second = BootstrapInterval(V3().scoring(), runs, {});
  const auto other_seed = BootstrapInterval(V3().scoring(), runs, {.seed = 2});

  ASSERT_TRUE(first && second && other_seed);
  EXPECT_EQ(first->low_minutes, second->low_minutes);
  EXPECT_EQ(first->high_minutes, second->high_minutes);
  EXPECT_NEAR(first->low_minutes, other_seed->low_minutes, 0.3);
  EXPECT_LT(first->low_minutes, *Score(V3().scoring(), runs).minutes);
  EXPECT_GT(first->high_minutes, *Score(V3().scoring(), runs).minutes);
}

TEST(ScoreIntervalTest, EqualRunsLeaveNoDoubt) {
  const auto interval = BootstrapInterval(V3().scoring(), Runs({7, 7, 7, 7, 7}), {});

  EXPECT_DOUBLE_EQ(interval->low_minutes, 7);
  EXPECT_DOUBLE_EQ(interval->high_minutes, 7);
}

TEST(ScoreIntervalTest, WithoutAScoreThereIsNone) {
  EXPECT_FALSE(BootstrapInterval(V3().scoring(), Runs({1, 2}), {}));
  EXPECT_FALSE(BootstrapInterval(V3().scoring(), std::vector<RunScore>(5), {}));
}

TEST(ScoreIntervalTest, StretchesWithTheTimes) {
  std::vector<double> minutes = NormalMinutes(5, 10, 3);
  const auto once = BootstrapInterval(V3().scoring(), Runs(minutes), {});
  for (double& m : minutes)
    m *= 4;
  const auto four = BootstrapInterval(V3().scoring(), Runs(minutes), {});

  EXPECT_NEAR(four->low_minutes, 4 * once->low_minutes, 1e-9);
  EXPECT_NEAR(four->high_minutes, 4 * once->high_minutes, 1e-9);
}

// Against a plain bootstrap with other random numbers.
TEST(ScoreIntervalTest, AgreesWithAPlainBootstrap) {
  const std::vector<double> minutes = NormalMinutes(7, 10, 3);
  const auto interval = BootstrapInterval(V3().scoring(), Runs(minutes), {.resamples = 20000});
  const Stream stream(99, Purpose::kTest, /*rank=*/1);
  std::vector<double> means;
  uint64_t index = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<double> sample;
    for (int k = 0; k < 10; ++k)
      sample.push_back(minutes[static_cast<size_t>(stream.UniformDouble(index++) * 10)]);
    std::sort(sample.begin(), sample.end());
    double sum = 0;
    for (size_t k = 1; k < 9; ++k)
      sum += sample[k];
    means.push_back(sum / 8);
  }
  std::sort(means.begin(), means.end());
  EXPECT_NEAR(interval->low_minutes, means[500], 0.1);
  EXPECT_NEAR(interval->high_minutes, means[19500], 0.1);
}

// Of many sets drawn from one distribution most intervals hold its mean. A percentile interval of
// ten values is known to be too narrow, so 95 % is not reached.
TEST(ScoreIntervalTest, HoldsTheMeanInMostSets) {
  int held = 0;
  constexpr int kSets = 200;
  for (uint64_t seed = 1; seed <= kSets; ++seed) {
    const auto interval =
        BootstrapInterval(V3().scoring(), Runs(NormalMinutes(seed, 10, 3)), {.resamples = 500});
    held += interval->low_minutes <= 30 && 30 <= interval->high_minutes;
  }
  EXPECT_GT(held, kSets * 80 / 100);
  EXPECT_LT(held, kSets);
}

}  // namespace
}  // namespace assay::rules
