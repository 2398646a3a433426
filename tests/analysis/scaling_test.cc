#include "common/analysis/scaling.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::analysis {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Shape {
  std::string system;
  int64_t units = 4;
  double batch_size = 64;
  std::vector<int64_t> epochs = {10, 20, 20, 30, 40};  // of each run; the extremes are left out
  double epoch_s = 10;
};

// Runs without staging whose epochs take 80 % training and 20 % evaluation.
Characteristics Of(const Shape& shape) {
  Entry entry = {.system = shape.system, .benchmark = "cosmoflow", .accelerators = shape.units};
  for (const int64_t epochs : shape.epochs) {
    const auto count = static_cast<double>(epochs);
    entry.runs.push_back({.run_s = shape.epoch_s * count,
                          .epochs = epochs,
                          .closed_epochs = epochs,
                          .epoch_s = shape.epoch_s * count,
                          .evaluations = epochs,
                          .evaluation_s = shape.epoch_s * count / 5,
                          .evaluation_in_epoch_s = shape.epoch_s * count / 5,
                          .batch_size = shape.batch_size,
                          .train_samples = 6400,
                          .eval_samples = 1600});
  }
  return Characterize(entry);
}

const std::vector<int64_t> kSlow = {70, 80, 80, 80, 90};

TEST(ScalingTest, CombinesTrainingAndEvaluation) {
  const ScalingPoint point = ScalingOf(Of({.system = "a"}));

  EXPECT_DOUBLE_EQ(*point.train_samples_per_s, 6400 / 8.0);
  EXPECT_DOUBLE_EQ(*point.eval_samples_per_s, 1600 / 2.0);
  EXPECT_DOUBLE_EQ(*point.samples_per_s, 8000 / 10.0);
  EXPECT_DOUBLE_EQ(*point.epochs_per_h, 360);
  EXPECT_DOUBLE_EQ(*point.steps, 70.0 / 3 * 6400 / 64);
  EXPECT_DOUBLE_EQ(*point.compute_minutes, 70.0 / 3 * 10 / 60);
}

TEST(EpochScalingTest, PoolsTheRunsOfABatchSize) {
  const std::vector<Characteristics> entries = {
      Of({.system = "b", .batch_size = 256, .epochs = kSlow}), Of({.system = "a"}),
      Of({.system = "c", .epochs = {10, 50, 50, 50, 60}})};

  const std::vector<EpochsAtBatch> known = EpochScaling(entries);

  ASSERT_EQ(known.size(), 2U);
  EXPECT_EQ(known[0].batch_size, 64);
  EXPECT_DOUBLE_EQ(known[0].epochs.mean, (20 + 20 + 30 + 50 + 50 + 50) / 6.0);
  EXPECT_THAT(known[0].systems, ElementsAre("a", "c"));
  EXPECT_EQ(known[1].epochs.mean, 80);
  EXPECT_EQ(known[1].epochs.sd, 0.0);
}

TEST(EpochScalingTest, InterpolatesByAPowerLawAndRefusesToExtrapolate) {
  const std::vector<EpochsAtBatch> known = {
      {.batch_size = 64, .epochs = {.mean = 20, .sd = 2.0, .count = 3}, .systems = {"a"}},
      {.batch_size = 256, .epochs = {.mean = 80, .sd = 4.0, .count = 3}, .systems = {"b"}}};

  const absl::StatusOr<EpochEstimate> between = EpochsFor(known, 128);
  ASSERT_THAT(between, IsOk());
  EXPECT_DOUBLE_EQ(between->mean, 40);  // proportional to the batch size here
  EXPECT_DOUBLE_EQ(between->sd, 4);     // 10 %, the larger relative spread
  EXPECT_THAT(between->basis, HasSubstr("power law"));

  EXPECT_EQ(EpochsFor(known, 256)->mean, 80);
  EXPECT_THAT(EpochsFor(known, 64)->basis, HasSubstr("measured by a"));
  EXPECT_THAT(EpochsFor(known, 512), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(EpochsFor(known, 32), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(EpochsFor({}, 64), StatusIs(absl::StatusCode::kNotFound));
}

TEST(PredictTest, WeakScalingKeepsTheThroughputOfAUnit) {
  const Characteristics base = Of({.system = "a", .epochs = kSlow});
  const std::vector<EpochsAtBatch> known = {
      {.batch_size = 256, .epochs = {.mean = 100, .sd = 10.0, .count = 3}, .systems = {"b"}}};

  const absl::StatusOr<Prediction> prediction = Predict(base, known, {.batch_size = 256});

  ASSERT_THAT(prediction, IsOk());
  EXPECT_EQ(prediction->units, 16);
  EXPECT_EQ(prediction->epoch_s, 2.5);
  EXPECT_DOUBLE_EQ(prediction->minutes, 100 * 2.5 / 60);
  EXPECT_DOUBLE_EQ(prediction->sd_minutes, 10 * 2.5 / 60);
  EXPECT_THAT(prediction->assumptions, Contains(HasSubstr("weak scaling from 4 units")));
}

TEST(PredictTest, TakesWhatWasMeasured) {
  const Characteristics base = Of({.system = "a"});

  const absl::StatusOr<Prediction> prediction =
      Predict(base, {}, {.batch_size = 64, .epochs = 30, .epoch_s = 4, .units = 8});

  ASSERT_THAT(prediction, IsOk());
  EXPECT_EQ(prediction->units, 8);
  EXPECT_DOUBLE_EQ(prediction->minutes, 30 * 4 / 60.0);
  EXPECT_EQ(prediction->sd_minutes, 0);
}

TEST(PredictTest, EachUnitStagesItsShare) {
  Characteristics base = Of({.system = "a", .epochs = kSlow});
  base.breakdown->staging = 0.5;

  const absl::StatusOr<Prediction> prediction = Predict(base, {}, {.batch_size = 128, .epochs = 1});

  ASSERT_THAT(prediction, IsOk());
  EXPECT_DOUBLE_EQ(prediction->staging_minutes, base.minutes->mean * 0.5 / 2);
  EXPECT_DOUBLE_EQ(prediction->minutes, prediction->staging_minutes + 5 / 60.0);
}

TEST(PredictTest, RefusesWhatNobodyCanKnow) {
  const Characteristics base = Of({.system = "a"});

  EXPECT_THAT(Predict(base, {}, {.batch_size = 128}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Predict(base, {}, {.batch_size = 128, .epochs = 9, .units = 4}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Predict(Of({.system = "a", .units = 0}), {}, {.batch_size = 128, .epochs = 9}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::analysis
