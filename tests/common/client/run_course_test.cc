// Times and figures below are those of the records, added up by hand.

#include "common/client/run_course.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::client {
namespace {

std::string Line(int64_t time_ms, absl::string_view key, absl::string_view value = "null",
                 absl::string_view metadata = "{}") {
  return absl::StrCat(":::MLLOG {\"namespace\": \"\", \"time_ms\": ", time_ms,
                      ", \"event_type\": \"POINT_IN_TIME\", \"key\": \"", key,
                      "\", \"value\": ", value, ", \"metadata\": ", metadata, "}\n");
}

TEST(RunCourseTest, FollowsQualityAndTime) {
  const std::string log = absl::StrCat(
      Line(1'000'000, "init_start"), Line(1'004'000, "init_stop"), "free text\n",
      Line(1'005'000, "run_start"), Line(1'005'000, "staging_start"),
      Line(1'006'000, "staging_stop"), Line(1'006'000, "train_samples", "512"),
      Line(1'006'000, "epoch_start"), Line(1'016'000, "eval_start"),
      Line(1'018'000, "eval_error", "0.5", "{\"epoch_num\": 1}"), Line(1'018'000, "eval_stop"),
      Line(1'018'000, "epoch_stop"), Line(1'018'500, "epoch_start"), Line(1'028'500, "epoch_stop"),
      Line(1'028'500, "eval_start"), Line(1'030'500, "eval_error", "0.25", "{\"epoch_num\": 2}"),
      Line(1'030'500, "eval_stop"), Line(1'031'000, "run_stop"));

  const RunCourse course = ReadCourse(log, "eval_error");

  ASSERT_EQ(course.points.size(), 2U);
  EXPECT_DOUBLE_EQ(course.points[0].seconds, 13);
  EXPECT_EQ(course.points[0].epoch, 1);
  EXPECT_EQ(course.points[0].samples, 512);
  EXPECT_EQ(course.points[0].line, 10);
  EXPECT_DOUBLE_EQ(course.points[1].quality, 0.25);
  EXPECT_EQ(course.points[1].samples, 1024);
  ASSERT_TRUE(course.phases.has_value());
  EXPECT_DOUBLE_EQ(course.phases->init, 4);
  EXPECT_DOUBLE_EQ(course.phases->untimed_staging, 0);
  EXPECT_DOUBLE_EQ(course.phases->staging, 1);
  EXPECT_DOUBLE_EQ(course.phases->training, 20);
  EXPECT_DOUBLE_EQ(course.phases->evaluation, 4) << "one within its epoch, one after it";
  EXPECT_DOUBLE_EQ(course.phases->rest, 1);
  EXPECT_DOUBLE_EQ(course.phases->total, 26);
}

TEST(RunCourseTest, KnowsTheBestTheLastAndTheOneAtTheTarget) {
  RunCourse course;
  for (const double quality : {0.5, 0.2, 0.1, 0.3}) {
    const double epoch = static_cast<double>(course.points.size()) + 1;
    course.points.push_back({.epoch = epoch, .quality = quality});
  }

  const QualityReached lower = ReachedBy(course, 0.2, true);
  EXPECT_EQ(lower.best->epoch, 3);
  EXPECT_EQ(lower.last->epoch, 4);
  EXPECT_EQ(lower.at_target->epoch, 2);
  const QualityReached higher = ReachedBy(course, 0.6, false);
  EXPECT_EQ(higher.best->epoch, 1);
  EXPECT_FALSE(higher.at_target.has_value());
  EXPECT_FALSE(ReachedBy({}, 0.2, true).last.has_value());
}

TEST(RunCourseTest, TakesWhatALogDoesNotSayAsNotKnown) {
  const RunCourse course =
      ReadCourse(absl::StrCat(Line(5'000, "eval_error", "\"bad\""),
                              Line(5'000, "eval_error", "0.5"), ":::MLLOG {broken\n"),
                 "eval_error");

  ASSERT_EQ(course.points.size(), 1U);
  EXPECT_FALSE(course.points[0].epoch.has_value());
  EXPECT_FALSE(course.points[0].samples.has_value());
  EXPECT_EQ(course.points[0].line, 2);
  EXPECT_FALSE(course.phases.has_value());
}

TEST(RunCourseTest, CountsStagingBeforeTheClockApart) {
  const RunCourse course =
      ReadCourse(absl::StrCat(Line(1'000, "staging_start"), Line(9'000, "staging_stop"),
                              Line(10'000, "run_start"), Line(12'000, "run_stop")),
                 "eval_error");

  ASSERT_TRUE(course.phases.has_value());
  EXPECT_DOUBLE_EQ(course.phases->untimed_staging, 8);
  EXPECT_DOUBLE_EQ(course.phases->staging, 0);
  EXPECT_DOUBLE_EQ(course.phases->rest, 2);
}

}  // namespace
}  // namespace assay::client
