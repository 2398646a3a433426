#include "worker/engine/lr_schedule.h"

#include <gtest/gtest.h>

#include <iterator>

#include "tests/support/status_matchers.h"

namespace assay {
namespace {

using testing::IsOk;
using testing::StatusIs;

// Reference values: CosmoFlow with a global batch of 512, four warm-up epochs, base 0.001.
LrSchedule Cosmoflow512() {
  return {.base = 1e-3, .scale = 512 / 64, .warmup_epochs = 4, .decays = {{32, 0.25}, {64, 0.125}}};
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

// Peak 0.008; from 0-based epoch 4 on over 170 epochs to 1 % of it, as ABCI's open entry of v0.7.
// Halfway: 0.008 * (0.01 + 0.99 / 2).
TEST(LrScheduleTest, FadesLinearlyToAFractionOfThePeak) {
  LrSchedule schedule = Cosmoflow512();
  schedule.decays.clear();
  schedule.fade = {.epochs = 170, .end_factor = 0.01};
  const struct {
    int64_t epoch;
    double rate;
  } rows[] = {{0, 0.001},    {3, 0.00625},   {4, 0.008},     {5, 0.0079534117647058824},
              {89, 0.00404}, {174, 0.00008}, {175, 0.00008}, {1000, 0.00008}};

  EXPECT_THAT(Validate(schedule), IsOk());
  for (const auto& row : rows)
    EXPECT_NEAR(LearningRateAt(schedule, row.epoch), row.rate, 1e-15) << "epoch " << row.epoch;
}

// (1 - 1/4)^2 = 9/16, (1/2)^2 = 1/4, (1/4)^2 = 1/16 of what lies between 2 and 0.5.
TEST(LrScheduleTest, FadesWithAPower) {
  const LrSchedule schedule = {.base = 2, .fade = {.epochs = 4, .end_factor = 0.25, .power = 2}};
  const double rates[] = {2, 1.34375, 0.875, 0.59375, 0.5, 0.5};

  for (int64_t epoch = 0; epoch < std::ssize(rates); ++epoch)
    EXPECT_DOUBLE_EQ(LearningRateAt(schedule, epoch), rates[epoch]) << "epoch " << epoch;
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
              {"factor of zero", {.decays = {{4, 0}}}},
              {"negative fade", {.fade = {.epochs = -1}}},
              {"fade to more than the peak", {.fade = {.epochs = 1, .end_factor = 1.5}}},
              {"fade without power", {.fade = {.epochs = 1, .power = 0}}},
              {"fade beside boundaries", {.decays = {{4, 0.5}}, .fade = {.epochs = 1}}}};

  for (const auto& row : rows)
    EXPECT_THAT(Validate(row.schedule), StatusIs(absl::StatusCode::kInvalidArgument)) << row.name;
}

}  // namespace
}  // namespace assay
