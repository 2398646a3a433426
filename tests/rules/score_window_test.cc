#include "common/rules/score_window.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ScoreWindowTest, WithoutMoreRunsThanDemandedNothingIsChosen) {
  const WindowScore window = ScoreWindows(V3().scoring(), Runs({1, 2, 3, 4, 5}), 5);

  EXPECT_EQ(window.score.minutes, 3);
  EXPECT_EQ(window.size, 5);
  EXPECT_EQ(window.explanation, "");
}

TEST(ScoreWindowTest, TakesTheWindowNearestTheMedianOfAllRuns) {
  // Windows of 3 have the scores (middle values) 10, 20, 21, 22, 30; the median of all is 21.
  const WindowScore window = ScoreWindows(V3().scoring(), Runs({1, 10, 20, 21, 22, 30, 40}), 3);

  EXPECT_EQ(window.median_minutes, 21);
  EXPECT_EQ(window.score.minutes, 21);
  EXPECT_EQ(window.first, 2);
  EXPECT_THAT(window.score.counted, ElementsAre(3));
  EXPECT_THAT(window.explanation, HasSubstr("runs 3 to 5 of 7"));
}

TEST(ScoreWindowTest, TheSlowerOfTwoEquallyNearWins) {
  const WindowScore window = ScoreWindows(V3().scoring(), Runs({10, 10, 10, 30, 30, 30}), 3);

  EXPECT_EQ(window.median_minutes, 20);
  EXPECT_EQ(window.score.minutes, 30) << "nobody gains by a tie";
}

TEST(ScoreWindowTest, WindowsInWhichTooManyFailedDoNotCount) {
  const double never = std::numeric_limits<double>::infinity();
  const WindowScore window = ScoreWindows(V3().scoring(), Runs({never, never, 10, 12, 14}), 3);

  EXPECT_EQ(window.windows, 3);
  EXPECT_EQ(window.windows_scored, 2);
  EXPECT_EQ(window.median_minutes, 14);

  const WindowScore none = ScoreWindows(V3().scoring(), Runs({never, never, 10, never, never}), 3);
  EXPECT_EQ(none.score.minutes, std::nullopt);
  EXPECT_EQ(none.score.dropped, 4);
  EXPECT_THAT(none.score.reason, HasSubstr("none of the 3 windows"));
}

// Against a plain search in double over random sets.
TEST(ScoreWindowTest, NoOtherWindowIsNearer) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Stream stream(seed, Purpose::kTest);
    const size_t count = 6 + stream.Below(1000, 12);
    std::vector<double> minutes;
    for (size_t i = 0; i < count; ++i)
      minutes.push_back(stream.Below(i, 10) == 0 ? std::numeric_limits<double>::infinity()
                                                 : 5 + 10 * stream.UniformDouble(2000 + i));
    const WindowScore window = ScoreWindows(V3().scoring(), Runs(minutes), 5);

    std::vector<double> sorted = minutes;
    std::sort(sorted.begin(), sorted.end());
    const double median =
        count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
    double nearest = std::numeric_limits<double>::infinity();
    for (size_t first = 0; first + 5 <= count; ++first) {
      std::vector<double> five(minutes.begin() + static_cast<std::ptrdiff_t>(first),
                               minutes.begin() + static_cast<std::ptrdiff_t>(first) + 5);
      std::sort(five.begin(), five.end());
      const double score = (five[1] + five[2] + five[3]) / 3;
      if (std::isfinite(score)) nearest = std::min(nearest, std::fabs(score - median));
    }
    ASSERT_EQ(window.score.minutes.has_value(), std::isfinite(nearest)) << "seed=" << seed;
    if (!window.score.minutes || !std::isfinite(median)) continue;
    EXPECT_NEAR(std::fabs(*window.score.minutes - median), nearest, 1e-9) << "seed=" << seed;
    for (const int position : window.score.counted)
      EXPECT_TRUE(window.contains(position)) << "seed=" << seed;
  }
}

}  // namespace
}  // namespace assay::rules
