#include "common/analysis/statistics.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Times = std::vector<std::optional<double>>;

TEST(MomentsTest, UsesTheSampleStandardDeviation) {
  const std::optional<Moments> moments = MomentsOf(std::vector<double>{2, 4, 4, 6});

  ASSERT_TRUE(moments.has_value());
  EXPECT_EQ(moments->mean, 4);
  EXPECT_DOUBLE_EQ(*moments->sd, std::sqrt(8.0 / 3.0));
  EXPECT_EQ(moments->count, 4);
}

TEST(MomentsTest, OneValueHasNoSpreadAndNoneHasNoMoments) {
  EXPECT_EQ(MomentsOf(std::vector<double>{7})->mean, 7);
  EXPECT_EQ(MomentsOf(std::vector<double>{7})->sd, std::nullopt);
  EXPECT_EQ(MomentsOf(std::vector<double>{0.5, 0.5})->sd, 0.0);
  EXPECT_FALSE(MomentsOf({}).has_value());
}

TEST(MiddleRunsTest, LeavesOutTheFastestAndTheSlowest) {
  EXPECT_THAT(MiddleRuns(Times{30, 10, 20, 40, 60}), ElementsAre(2, 0, 3));
}

TEST(MiddleRunsTest, ARunWithoutAnEndIsTheSlowest) {
  EXPECT_THAT(MiddleRuns(Times{30, std::nullopt, 20, 10}), ElementsAre(2, 0));
}

TEST(MiddleRunsTest, OnlyOneRunWithoutAnEndIsLeftOutInPlaceOfTheSlowest) {
  EXPECT_THAT(MiddleRuns(Times{std::nullopt, 30, std::nullopt, 20, 10}), ElementsAre(3, 1));
}

TEST(MiddleRunsTest, FewerThanThreeRunsAllRemain) {
  EXPECT_THAT(MiddleRuns(Times{20, 10}), ElementsAre(1, 0));
  EXPECT_THAT(MiddleRuns(Times{10}), ElementsAre(0));
  EXPECT_THAT(MiddleRuns(Times{std::nullopt}), IsEmpty());
  EXPECT_THAT(MiddleRuns(Times{}), IsEmpty());
}

}  // namespace
}  // namespace assay::analysis
