#include "worker/engine/lr_schedule.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace assay {
namespace {

using testing::IsOk;
using testing::StatusIs;

// Reference values: CosmoFlow with a global batch of 512, four warm-up epochs, base 0.001.
LrSchedule Cosmoflow512() {
  return {.base = 1e-3,
          .scale = LrScale(LrScaling::kLinear, 512, 64),
          .warmup_epochs = 4,
          .decays = {{32, 0.25}, {64, 0.125}}};
}

TEST(LrScheduleTest, FollowsThePublishedTableOfBatch512) {
  const struct {
    int64_t epoch;
    double rate;
  } rows[] = {{0, 0.001},  {1, 0.00275}, {2, 0.0045}, {3, 0.00625}, {4, 0.008},
              {32, 0.008}, {33, 0.002},  {64, 0.002}, {65, 0.001},  {1000, 0.001}};

  for (const auto& row : rows)
    EXPECT_DOUBLE_EQ(LearningRateAt(Cosmoflow512(), row.epoch), row.rate) << "epoch " << row.epoch;
}

TEST(LrScheduleTest, IgnoresTheOrderOfBoundaries) {
  LrSchedule schedule = Cosmoflow512();
  std::swap(schedule.decays[0], schedule.decays[1]);

  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 40), 0.002);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 70), 0.001);
}

TEST(LrScheduleTest, StartsAtThePeakWithoutWarmup) {
  EXPECT_DOUBLE_EQ(LearningRateAt({.base = 1e-3, .scale = 4}, 0), 4e-3);
}

TEST(LrScheduleTest, WarmsUpEvenPastABoundary) {
  const LrSchedule schedule = {.base = 1, .scale = 3, .warmup_epochs = 4, .decays = {{1, 0.5}}};

  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 2), 2);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 4), 1.5);
}

TEST(LrScaleTest, IsLinearRootOrOne) {
  EXPECT_DOUBLE_EQ(LrScale(LrScaling::kNone, 512, 64), 1);
  EXPECT_DOUBLE_EQ(LrScale(LrScaling::kLinear, 512, 64), 8);
  EXPECT_DOUBLE_EQ(LrScale(LrScaling::kSqrt, 256, 64), 2);
}

TEST(LrScheduleTest, RefusesNonsense) {
  EXPECT_THAT(Validate(Cosmoflow512()), IsOk());
  const struct {
    const char* name;
    LrSchedule schedule;
  } rows[] = {{"no rate", {.base = 0}},
              {"negative scale", {.scale = -1}},
              {"negative warm-up", {.warmup_epochs = -1}},
              {"boundary twice", {.decays = {{4, 0.5}, {4, 0.25}}}},
              {"negative boundary", {.decays = {{-1, 0.5}}}},
              {"factor of zero", {.decays = {{4, 0}}}}};

  for (const auto& row : rows)
    EXPECT_THAT(Validate(row.schedule), StatusIs(absl::StatusCode::kInvalidArgument)) << row.name;
}

}  // namespace
}  // namespace assay
