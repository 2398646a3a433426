#include "common/rules/score_preview.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/random.h"
#include "common/rules/registry.h"
#include "tests/rules/sample_runs.h"

namespace assay::rules {
namespace {

using ::assay::testing::V3;
using ::testing::HasSubstr;

RunScore Good(double minutes) {
  return {.compliant = true, .reached_target = true, .run_ms = minutes * 60000};
}

TEST(ScorePreviewTest, TheLastRunBoundsTheScoreOnBothSides) {
  const std::vector<RunScore> ended = {Good(10), Good(20), Good(30), Good(40)};

  const ScorePreview preview = PreviewScore(V3().scoring(), ended, 1);

  EXPECT_DOUBLE_EQ(*preview.least_minutes, 20) << "it is the fastest: 10, 20, 30 count";
  EXPECT_DOUBLE_EQ(*preview.most_minutes, 30) << "it is the slowest: 20, 30, 40 count";
  EXPECT_DOUBLE_EQ(*preview.if_like_fastest_minutes, 20);
  EXPECT_DOUBLE_EQ(*preview.if_like_slowest_minutes, 30);
}

TEST(ScorePreviewTest, WithoutRunsToComeItIsTheScore) {
  const std::vector<RunScore> ended = {Good(10), Good(20), Good(30)};

  const ScorePreview preview = PreviewScore(V3().scoring(), ended, 0);

  EXPECT_EQ(preview.least_minutes, 20);
  EXPECT_EQ(preview.most_minutes, 20);
}

TEST(ScorePreviewTest, TwoRunsToComeLeaveNoUpperBound) {
  const ScorePreview preview =
      PreviewScore(V3().scoring(), std::vector<RunScore>{Good(10), Good(20)}, 3);

  EXPECT_TRUE(preview.least_minutes);
  EXPECT_FALSE(preview.most_minutes);
  EXPECT_THAT(preview.note, HasSubstr("no upper bound"));
}

TEST(ScorePreviewTest, TwoFailuresAreLostWhateverComes) {
  const ScorePreview preview =
      PreviewScore(V3().scoring(), std::vector<RunScore>{{}, Good(10), {}}, 7);

  EXPECT_TRUE(preview.is_lost);
  EXPECT_FALSE(preview.least_minutes);
  EXPECT_THAT(preview.note, HasSubstr("2 runs failed"));
}

// However the remaining runs end, the score lies between the bounds.
TEST(ScorePreviewTest, EveryOutcomeLiesWithinTheBounds) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Stream stream(seed, Purpose::kTest);
    std::vector<RunScore> runs;
    for (uint32_t i = 0; i < 10; ++i) {
      const bool fails = stream.Below(i, 20) == 0;
      runs.push_back(fails ? RunScore{} : Good(5 + 10 * stream.UniformDouble(100 + i)));
    }
    const TimeToSolution actual = Score(V3().scoring(), runs);
    for (size_t done = 0; done <= runs.size(); ++done) {
      const ScorePreview preview = PreviewScore(V3().scoring(), std::span(runs).first(done),
                                                static_cast<int>(runs.size() - done));
      if (!actual.minutes) continue;
      ASSERT_TRUE(preview.least_minutes) << "seed=" << seed << " done=" << done;
      EXPECT_LE(*preview.least_minutes, *actual.minutes + 1e-9) << "seed=" << seed;
      if (preview.most_minutes) {
        EXPECT_GE(*preview.most_minutes, *actual.minutes - 1e-9) << "seed=" << seed;
      }
    }
  }
}

}  // namespace
}  // namespace assay::rules
