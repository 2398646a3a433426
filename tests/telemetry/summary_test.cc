#include "common/telemetry/summary.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;

Series Of(const std::vector<Column>& columns, const std::vector<std::vector<int64_t>>& values) {
  Series series;
  series.header.columns = columns;
  series.columns = values;
  for (size_t i = 0; i < values[0].size(); ++i)
    series.at_ns.push_back(static_cast<int64_t>(i) * kSecond);
  return series;
}

TEST(SummaryTest, AGaugeHasAMeanAndACounterARate) {
  const Series series = Of({{"memory.free", "bytes", false}, {"disk.vda.read", "bytes", true}},
                           {{10, 20, 60}, {1000, 1100, 1700}});
  const std::vector<Figure> figures = Summarize(series, 0, 2 * kSecond);
  ASSERT_THAT(figures, SizeIs(2));
  EXPECT_DOUBLE_EQ(figures[0].mean, 30);
  EXPECT_DOUBLE_EQ(figures[0].highest, 60);
  EXPECT_FALSE(figures[0].total.has_value());
  EXPECT_DOUBLE_EQ(figures[1].mean, 350);
  EXPECT_DOUBLE_EQ(figures[1].highest, 600);
  EXPECT_DOUBLE_EQ(figures[1].total.value_or(0), 700);
}

TEST(SummaryTest, OnlyTheRunCountsUnlessItIsTooShort) {
  const Series series = Of({{"a", "bytes", true}}, {{0, 100, 110, 120, 1000}});
  EXPECT_DOUBLE_EQ(Summarize(series, kSecond, 3 * kSecond)[0].total.value_or(0), 20);
  EXPECT_DOUBLE_EQ(Summarize(series, kSecond, kSecond + 1)[0].total.value_or(0), 1000);
}

TEST(SummaryTest, WhatIsMissingIsNoZero) {
  const Series series = Of({{"a", "bytes", true}, {"b", "bytes", false}},
                           {{kMissing, 100, kMissing, 140}, {kMissing, kMissing, kMissing, 1}});
  const std::vector<Figure> figures = Summarize(series, 0, 10 * kSecond);
  ASSERT_THAT(figures, SizeIs(1)) << "of b there is one value";
  EXPECT_DOUBLE_EQ(figures[0].total.value_or(0), 40);
  EXPECT_DOUBLE_EQ(figures[0].mean, 20);
}

TEST(SummaryTest, ACounterThatBeginsAnewDoesNotCountBackwards) {
  const Series series = Of({{"a", "bytes", true}}, {{1000, 1010, 0, 5}});
  EXPECT_DOUBLE_EQ(Summarize(series, 0, 10 * kSecond)[0].total.value_or(0), 15);
}

TEST(SummaryTest, WhoElseUsedTheProcessors) {
  // Of two processors' two seconds the run had one second, others 0.4, a host 0.2.
  const std::vector<Column> columns = {{"cpu.user", "ms", true},
                                       {"cpu.system", "ms", true},
                                       {"cpu.idle", "ms", true},
                                       {"cpu.steal", "ms", true},
                                       {"run.cpu", "ms", true}};
  const Quiet quiet = QuietOf(Summarize(
      Of(columns, {{0, 600, 1100}, {0, 200, 300}, {0, 1000, 2400}, {0, 200, 200}, {0, 500, 1000}}),
      0, 2 * kSecond));
  EXPECT_DOUBLE_EQ(quiet.others.value_or(-1), 400.0 / 4000);
  EXPECT_DOUBLE_EQ(quiet.stolen.value_or(-1), 200.0 / 4000);
}

TEST(SummaryTest, ANodeThatDoesNotTellIsNotQuiet) {
  EXPECT_FALSE(QuietOf({}).others.has_value());
  EXPECT_FALSE(QuietOf({}).stolen.has_value());
  EXPECT_THAT(Summarize(Series{}, 0, 1), IsEmpty());
}

// Two processors for five minutes; in the third minute others have one of them.
TEST(SummaryTest, TheMinuteInWhichOthersUsedMostIsNamed) {
  std::vector<int64_t> user, idle, run;
  int64_t others = 0;
  for (int64_t second = 0; second <= 300; ++second) {
    if (second > 120 && second <= 180) others += 1000;
    user.push_back(second * 500 + others);
    run.push_back(second * 500);
    idle.push_back(second * 2000 - user.back());
  }
  const Series series =
      Of({{"cpu.user", "ms", true}, {"cpu.idle", "ms", true}, {"run.cpu", "ms", true}},
         {user, idle, run});
  const std::optional<Minute> worst = WorstMinute(series, 0, 300 * kSecond);
  ASSERT_TRUE(worst.has_value());
  EXPECT_EQ(worst->begin_ns, 120 * kSecond);
  EXPECT_NEAR(worst->others, 0.5, 1e-9);
  EXPECT_NEAR(WorstMinute(series, 0, 30 * kSecond)->others, 0, 1e-9) << "a short run is one minute";
}

TEST(SummaryTest, ACourseHasAMeanForEachPart) {
  const Series series = Of({{"memory.free", "bytes", false}, {"disk.vda.read", "bytes", true}},
                           {{10, 20, 30, 40}, {0, 100, 100, 400}});
  EXPECT_THAT(CourseOf(series, 0, 0, 4 * kSecond, 2), ElementsAre(15, 35));
  EXPECT_THAT(CourseOf(series, 1, 0, 4 * kSecond, 4), ElementsAre(std::nullopt, 100, 0, 300));
}

}  // namespace
}  // namespace assay::telemetry
