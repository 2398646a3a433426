#include "common/analysis/set_comparison.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/score_interval.h"
#include "tests/rules/sample_runs.h"

namespace assay::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

RunSet SetOf(const std::string& name, const std::vector<TimedRun>& runs) {
  return {.name = name, .runs = runs};
}

// Ten runs of about so many epochs, each of about so many seconds.
RunSet TenRuns(const std::string& name, double epochs, double seconds) {
  RunSet set = {.name = name};
  for (int i = 0; i < 10; ++i) {
    const double own_epochs = epochs + (i % 5) - 2;
    const double own_seconds = seconds * (1 + 0.004 * (i % 3 - 1));
    set.runs.push_back({.minutes = own_epochs * own_seconds / 60, .epochs = own_epochs});
  }
  return set;
}

TEST(SetComparisonTest, ComparesWhatTheOlympicMeanIsOf) {
  const RunSet set = SetOf("e-1", {{10, 5}, {12, 6}, {30, 10}, {8, 4}});

  const std::vector<TimedRun> counted = CountedRuns(set);

  ASSERT_THAT(counted, SizeIs(2));
  EXPECT_EQ(counted[0].minutes, 10);
  EXPECT_EQ(counted[1].minutes, 12);
}

TEST(SetComparisonTest, AFailedRunIsTheSlowest) {
  RunSet set = SetOf("e-1", {{10, 5}, {12, 6}, {30, 10}, {8, 4}});
  set.failed_count = 1;

  EXPECT_THAT(CountedRuns(set), SizeIs(3));

  set.failed_count = 0;
  set.is_weak = true;
  EXPECT_THAT(CountedRuns(set), SizeIs(4));
}

TEST(SetComparisonTest, ShorterEpochsAreToldFromLuckInConverging) {
  const SetComparison comparison =
      CompareSets(TenRuns("e-1", 40, 20), TenRuns("e-2", 40, 17.6), {});

  EXPECT_EQ(comparison.insignificant_count(), 1);
  EXPECT_NEAR(comparison.measures[2].ratio, 0.88, 0.005);
  EXPECT_THAT(ComparisonSentence(comparison),
              ::testing::MatchesRegex("e-2 is 12 % faster than e-1 \\(95 %: [0-9.]+ to [0-9.]+ "
                                      "%\\), because its epochs are shorter; the epochs to target "
                                      "do not differ significantly\\."));
}

TEST(SetComparisonTest, NamesWhatPullsTheOtherWay) {
  const std::string sentence =
      ComparisonSentence(CompareSets(TenRuns("e-1", 40, 20), TenRuns("e-2", 46, 15), {}));

  EXPECT_THAT(sentence, HasSubstr("because its epochs are 25 % shorter, although it needs 15 % "
                                  "more epochs."));
}

TEST(SetComparisonTest, SaysWhatCancelsOut) {
  const std::string sentence =
      ComparisonSentence(CompareSets(TenRuns("e-1", 40, 20), TenRuns("e-2", 48, 16.7), {}));

  EXPECT_THAT(sentence, HasSubstr("e-1 and e-2 do not differ significantly in time to solution"));
  EXPECT_THAT(sentence, HasSubstr("e-2's epochs are 17 % shorter, but it needs 20 % more epochs"));
}

TEST(SetComparisonTest, SaysFactorsWherePercentagesMislead) {
  EXPECT_THAT(ComparisonSentence(CompareSets(TenRuns("a", 40, 20), TenRuns("b", 40, 5), {})),
              HasSubstr("b is 4.00 times as fast as a (95 %: "));
  EXPECT_THAT(ComparisonSentence(CompareSets(TenRuns("a", 40, 20), TenRuns("b", 80, 20), {})),
              HasSubstr("b takes 2.0"));
}

TEST(SetComparisonTest, OfFewRunsItSaysNothing) {
  const SetComparison comparison =
      CompareSets(SetOf("e-1", {{10, 5}, {12, 6}}), TenRuns("e-2", 40, 20), {});

  EXPECT_FALSE(comparison.measures[0].low.has_value());
  EXPECT_THAT(ComparisonSentence(comparison), HasSubstr("too few to say whether they differ"));
  EXPECT_THAT(ComparisonSentence(CompareSets(SetOf("e-1", {}), SetOf("e-2", {}), {})),
              HasSubstr("e-1 has no run with a time"));
}

TEST(SetComparisonTest, TheSameSeedGivesTheSameIntervals) {
  const RunSet a = TenRuns("e-1", 40, 20);
  const RunSet b = TenRuns("e-2", 44, 19);

  const SetComparison one = CompareSets(a, b, {.seed = 3});
  const SetComparison two = CompareSets(a, b, {.seed = 3});
  const SetComparison other = CompareSets(a, b, {.seed = 4});

  EXPECT_EQ(one.measures[0].low, two.measures[0].low);
  EXPECT_NE(one.measures[0].low, other.measures[0].low);
  EXPECT_NEAR(*one.measures[0].low, *other.measures[0].low, 0.01);
}

// The mean of the interval of a score, when the other set does not vary: wider than the score's own
// percentile interval, which is known to be too narrow, and around the same middle.
TEST(SetComparisonTest, IsTheScoresIntervalWidened) {
  const std::vector<double> minutes = {20, 22, 21, 25, 24, 23, 22, 21, 20, 26};
  RunSet a = {.name = "a"};
  RunSet b = {.name = "b"};
  for (const double m : minutes) {
    a.runs.push_back({.minutes = 1, .epochs = 1});
    b.runs.push_back({.minutes = m, .epochs = 1});
  }

  const SetComparison comparison = CompareSets(a, b, {.resamples = 20'000});
  const auto score = rules::BootstrapInterval(assay::testing::V3().scoring(),
                                              assay::testing::Runs(minutes), {.resamples = 20'000});

  EXPECT_LT(*comparison.measures[0].low, score->low_minutes);
  EXPECT_GT(*comparison.measures[0].high, score->high_minutes);
  EXPECT_NEAR(*comparison.measures[0].low, score->low_minutes, 0.6);
  EXPECT_NEAR(*comparison.measures[0].high, score->high_minutes, 0.6);
}

TEST(MeasureTest, IsReadByItsName) {
  for (const Measure measure : {Measure::kMinutes, Measure::kEpochs, Measure::kEpochSeconds})
    EXPECT_EQ(MeasureOf(NameOf(measure)), measure);
  EXPECT_EQ(MeasureOf("seconds"), std::nullopt);
}

}  // namespace
}  // namespace assay::analysis
