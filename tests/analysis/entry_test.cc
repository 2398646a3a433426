#include "common/analysis/entry.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::analysis {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// `epochs` of 10 s, 2 of them evaluation; 5 s staged; the rest of `run_s` is extra.
RunTimes Run(double run_s, int64_t epochs) {
  const auto count = static_cast<double>(epochs);
  return {.run_s = run_s,
          .staging_s = 5,
          .epochs = epochs,
          .closed_epochs = epochs,
          .epoch_s = 10 * count,
          .evaluations = epochs,
          .evaluation_s = 2 * count,
          .evaluation_in_epoch_s = 2 * count,
          .batch_size = 64,
          .train_samples = 1600,
          .eval_samples = 400,
          .quality = 0.12,
          .reached_target = true};
}

Entry Sound() {
  return {.system = "s",
          .benchmark = "cosmoflow",
          .accelerators = 4,
          .runs = {Run(100, 9), Run(60, 5), Run(50, 4), Run(70, 6), Run(55, 5)},
          .score_minutes = 1};
}

TEST(CharacterizeTest, AveragesTheRunsThatRemain) {
  const Characteristics result = Characterize(Sound());

  EXPECT_THAT(result.runs, ElementsAre(4, 1, 3));
  EXPECT_DOUBLE_EQ(result.minutes->mean, (60 + 70 + 55) / 3.0 / 60);
  EXPECT_DOUBLE_EQ(result.epochs->mean, 16.0 / 3);
  EXPECT_DOUBLE_EQ(result.epoch_s->mean, 10);
  EXPECT_DOUBLE_EQ(result.epoch_s->sd.value_or(-1), 0);
  EXPECT_DOUBLE_EQ(result.staging_minutes->mean, 5.0 / 60);
  EXPECT_DOUBLE_EQ(*result.staging_per_epoch, 0.5);
  EXPECT_DOUBLE_EQ(result.train_per_unit->mean, 1600 / 8.0 / 4);
  EXPECT_DOUBLE_EQ(result.eval_per_unit->mean, 400 / 2.0 / 4);
  EXPECT_EQ(result.batch_size, 64.0);
  EXPECT_DOUBLE_EQ(*result.budget_h, (60 + 70 + 55) / 3.0 / 3600 * 4);
  EXPECT_DOUBLE_EQ(*result.compute_minutes(), 16.0 / 3 * 10 / 60);
  EXPECT_DOUBLE_EQ(*result.evaluation_rate(), 1);
  EXPECT_DOUBLE_EQ(*result.communication_intensity(), 4 / 64.0);
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(CharacterizeTest, SharesAddUpToOne) {
  const Characteristics result = Characterize(Sound());

  ASSERT_TRUE(result.breakdown.has_value());
  EXPECT_DOUBLE_EQ(result.breakdown->staging, 15 / 185.0);
  EXPECT_DOUBLE_EQ(result.breakdown->evaluation, 32 / 185.0);
  EXPECT_DOUBLE_EQ(result.breakdown->training, 128 / 185.0);
  EXPECT_DOUBLE_EQ(result.breakdown->extra, 10 / 185.0);
}

TEST(CharacterizeTest, EquationTwoEstimatesTheShareOfStaging) {
  const Characteristics result = Characterize(Sound());

  // T_staging / T_epoch = 0.5; 0.5 / (0.5 + epochs).
  EXPECT_DOUBLE_EQ(*result.estimated_staging, 0.5 / (0.5 + 16.0 / 3));
}

TEST(CharacterizeTest, StagingOffTheClockIsPartOfNothing) {
  Entry entry = Sound();
  for (RunTimes& run : entry.runs)
    run.is_staging_timed = false;

  const Characteristics result = Characterize(entry);

  EXPECT_EQ(result.breakdown->staging, 0);
  EXPECT_EQ(result.estimated_staging, 0.0);
  EXPECT_TRUE(result.staging_minutes.has_value());
  EXPECT_THAT(result.notes, Contains(HasSubstr("before the clock")));
}

TEST(CharacterizeTest, ProcessorsCountWhereThereAreNoAccelerators) {
  Entry entry = Sound();
  entry.accelerators = 0;
  entry.processors = 8;

  EXPECT_DOUBLE_EQ(Characterize(entry).train_per_unit->mean, 1600 / 8.0 / 8);

  entry.processors = 0;
  const Characteristics unknown = Characterize(entry);
  EXPECT_FALSE(unknown.train_per_unit.has_value());
  EXPECT_FALSE(unknown.budget_h.has_value());
  EXPECT_THAT(unknown.notes, Contains(HasSubstr("not known")));
}

TEST(CharacterizeTest, SaysWhatIsOddAboutTheRuns) {
  Entry entry = Sound();
  entry.runs[0].run_s = std::nullopt;
  entry.runs[1].run_s = std::nullopt;
  EXPECT_THAT(Characterize(entry).notes, Contains(HasSubstr("1 further runs have no end")));

  entry = Sound();
  entry.runs[1].batch_size = 128;
  EXPECT_EQ(Characterize(entry).batch_size, std::nullopt);
  EXPECT_THAT(Characterize(entry).notes, Contains(HasSubstr("different batch sizes")));

  entry.runs.resize(2);
  EXPECT_THAT(Characterize(entry).notes, Contains(HasSubstr("fewer than three")));

  entry.runs.clear();
  EXPECT_FALSE(Characterize(entry).minutes.has_value());
}

TEST(CharacterizeTest, InstancesOfAWeakSetAllCount) {
  Entry entry = Sound();
  entry.is_weak = true;

  EXPECT_EQ(Characterize(entry).minutes->count, 5);
}

TEST(CharacterizeTest, OpenfoldsEpochsSayNothingOfThroughput) {
  Entry entry = Sound();
  entry.benchmark = "openfold";

  const Characteristics result = Characterize(entry);

  EXPECT_FALSE(result.train_per_unit.has_value());
  EXPECT_TRUE(result.minutes.has_value());
}

}  // namespace
}  // namespace assay::analysis
