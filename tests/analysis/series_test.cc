#include "common/analysis/series.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/analysis/change_points.h"
#include "tests/analysis/synthetic_series.h"

namespace assay::analysis {
namespace {

using ::assay::testing::MakeSeries;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const MeasureHistory& SecondsOf(const Series& series) {
  return series.measures[0];
}

TEST(ChangePointsTest, FindsBothEndsOfAPlateau) {
  // 12 sets at 10, 12 at 12, 12 at 10 again, with noise that repeats.
  std::vector<double> values;
  for (int i = 0; i < 36; ++i)
    values.push_back((i >= 12 && i < 24 ? 12.0 : 10.0) * (1 + 0.01 * (i * 7 % 5 - 2)));

  const std::vector<ChangePoint> changes = FindChanges(values, {});

  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_EQ(changes[0].first, 12);
  EXPECT_NEAR(changes[0].ratio, 1.2, 0.01);
  EXPECT_EQ(changes[1].first, 24);
  EXPECT_NEAR(changes[1].ratio, 1 / 1.2, 0.01);
  EXPECT_LT(changes[0].p_value, 0.001);
}

TEST(ChangePointsTest, WhatIsBelowTwoPerCentIsNoChange) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i)
    values.push_back((i < 20 ? 10.0 : 10.15) * (1 + 0.0005 * (i * 7 % 5 - 2)));

  EXPECT_THAT(FindChanges(values, {}), IsEmpty());
  EXPECT_THAT(FindChanges(values, {.ratio_min = 1.01}), SizeIs(1));
}

TEST(ChangePointsTest, ThirteenValuesHaveTooFewOrders) {
  std::vector<double> values;
  for (int i = 0; i < 14; ++i)
    values.push_back(i < 7 ? 1.0 + 0.001 * i : 50.0 + 0.001 * i);

  EXPECT_THAT(FindChanges(values, {}), SizeIs(1));
  values.pop_back();
  EXPECT_THAT(FindChanges(values, {}), IsEmpty());
  EXPECT_THAT(FindChanges({}, {}), IsEmpty());
}

TEST(SeriesTest, JudgesFromTheSixthSetOn) {
  auto points = MakeSeries({.set_count = 7}, 3);
  points[6].epoch_seconds *= 1.5;

  const Series series = JudgeSeries({}, points, {}, {});

  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(SecondsOf(series).judgements[static_cast<size_t>(i)].standing, Standing::kTooFew);
  EXPECT_EQ(SecondsOf(series).judgements[5].standing, Standing::kExpected);
  EXPECT_EQ(SecondsOf(series).judgements[6].standing, Standing::kHigher);
  EXPECT_EQ(SecondsOf(series).judgements[6].earlier_count, 6);
  EXPECT_EQ(series.measures[1].judgements[6].standing, Standing::kExpected);  // of epochs
}

TEST(SeriesTest, AfterAChangeOnlyNewSetsAreTheMeasure) {
  const auto points = MakeSeries({.set_count = 30, .change_at = 15, .ratio = 1.2}, 5);

  const Series series = JudgeSeries({}, points, {}, {});

  ASSERT_THAT(SecondsOf(series).changes, SizeIs(1));
  EXPECT_EQ(SecondsOf(series).changes[0].first, 15);
  EXPECT_NEAR(SecondsOf(series).changes[0].ratio, 1.2, 0.02);
  EXPECT_EQ(SecondsOf(series).judgements[16].earlier_count, 1);
  EXPECT_THAT(series.measures[1].changes, IsEmpty());
}

TEST(SeriesTest, AVetoOfANeighbourHoldsForTheChange) {
  const auto points = MakeSeries({.set_count = 30, .change_at = 15, .ratio = 1.2}, 5);
  const std::vector<ChangeDecision> decisions = {{.kind = ChangeDecision::Kind::kVeto,
                                                  .set = points[16].set,
                                                  .measure = Measure::kEpochSeconds,
                                                  .reason = "repair",
                                                  .author = "ada"}};

  const Series series = JudgeSeries({}, points, decisions, {});

  ASSERT_THAT(SecondsOf(series).changes, SizeIs(1));
  EXPECT_TRUE(SecondsOf(series).changes[0].is_vetoed);
  EXPECT_EQ(SecondsOf(series).changes[0].decision->author, "ada");
  EXPECT_EQ(SecondsOf(series).judgements[16].earlier_count, 16);
}

TEST(SeriesTest, AMarkIsAChangeUntilItIsVetoed) {
  const auto points = MakeSeries({.set_count = 8}, 7);
  std::vector<ChangeDecision> decisions = {{.kind = ChangeDecision::Kind::kMark,
                                            .set = points[4].set,
                                            .reason = "new switch",
                                            .time_ms = 1}};

  const Series marked = JudgeSeries({}, points, decisions, {});
  decisions.push_back(
      {.kind = ChangeDecision::Kind::kVeto, .set = points[4].set, .reason = "no", .time_ms = 2});
  const Series vetoed = JudgeSeries({}, points, decisions, {});

  ASSERT_THAT(SecondsOf(marked).changes, SizeIs(1));
  EXPECT_EQ(SecondsOf(marked).changes[0].first, 4);
  EXPECT_FALSE(SecondsOf(marked).changes[0].p_value.has_value());
  EXPECT_EQ(SecondsOf(marked).judgements[7].standing, Standing::kTooFew);
  EXPECT_THAT(marked.measures[1].changes, SizeIs(1));  // of both measures
  EXPECT_THAT(SecondsOf(vetoed).changes, IsEmpty());
}

TEST(SeriesTest, IsInOrderOfTime) {
  auto points = MakeSeries({.set_count = 6}, 1);
  std::swap(points[0], points[5]);

  const Series series = JudgeSeries({}, points, {}, {});

  EXPECT_EQ(series.points.front().set, "e-1");
  EXPECT_EQ(series.points.back().set, "e-6");
}

TEST(SeriesTest, EqualEpochsLetANeighbouringNumberPass) {
  std::vector<SeriesPoint> points;
  for (int i = 0; i < 7; ++i)
    points.push_back({.set = std::to_string(i),
                      .time_ms = i,
                      .epoch_seconds = 10,
                      .epochs = i < 6 ? 24.0 : 24.2,
                      .run_count = 3});

  const Series series = JudgeSeries({}, points, {}, {});

  EXPECT_EQ(series.measures[1].judgements[6].standing, Standing::kExpected);
}

}  // namespace
}  // namespace assay::analysis
