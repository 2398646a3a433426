// Logs as runs write them, with times that can be added up by hand, and the oddities of real ones.

#include "common/analysis/run_times.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "common/rules/check.h"
#include "common/rules/registry.h"

namespace assay::analysis {
namespace {

struct Line {
  const char* key;
  int64_t time_ms;
  const char* value = "null";
};

std::string Log(const std::vector<Line>& lines) {
  std::string log;
  for (const Line& line : lines)
    absl::StrAppend(&log, ":::MLLOG {\"namespace\": \"\", \"time_ms\": ", line.time_ms,
                    ", \"event_type\": \"POINT_IN_TIME\", \"key\": \"", line.key,
                    "\", \"value\": ", line.value, ", \"metadata\": {}}\n");
  return log;
}

RunTimes Read(const std::vector<Line>& lines) {
  const std::string log = Log(lines);
  return ReadRunTimes(log, rules::Check(log, *rules::FindRuleSet("v0.7")).facts);
}

// Two epochs of 10 s with an evaluation of 2 s each, after 4 s of staging.
const std::vector<Line> kSound = {{"submission_benchmark", 0, "\"cosmoflow\""},
                                  {"run_start", 1000},
                                  {"global_batch_size", 1000, "64"},
                                  {"train_samples", 1000, "1600"},
                                  {"eval_samples", 1000, "400"},
                                  {"staging_start", 1000},
                                  {"staging_stop", 5000},
                                  {"epoch_start", 6000},
                                  {"eval_start", 14000},
                                  {"eval_stop", 16000},
                                  {"epoch_stop", 16000},
                                  {"eval_error", 16000, "0.2"},
                                  {"epoch_start", 16000},
                                  {"eval_start", 24000},
                                  {"eval_stop", 26000},
                                  {"epoch_stop", 26000},
                                  {"eval_error", 26000, "0.12"},
                                  {"run_stop", 27000}};

TEST(RunTimesTest, AddsUpTheIntervals) {
  const RunTimes times = Read(kSound);

  EXPECT_EQ(times.run_s, 26.0);
  EXPECT_EQ(times.staging_s, 4.0);
  EXPECT_TRUE(times.is_staging_timed);
  EXPECT_EQ(times.epochs, 2);
  EXPECT_EQ(times.closed_epochs, 2);
  EXPECT_EQ(times.epoch_s, 20.0);
  EXPECT_EQ(times.evaluations, 2);
  EXPECT_EQ(times.evaluation_s, 4.0);
  EXPECT_EQ(times.training_s(), 16.0);
  EXPECT_EQ(times.batch_size, 64.0);
  EXPECT_EQ(times.quality, 0.12);
  EXPECT_TRUE(times.reached_target);
}

TEST(RunTimesTest, ThroughputIsSamplesOverTheTimeOfTheirPhase) {
  const RunTimes times = Read(kSound);

  EXPECT_EQ(times.train_samples_per_s(), 2 * 1600 / 16.0);
  EXPECT_EQ(times.eval_samples_per_s(), 2 * 400 / 4.0);
  EXPECT_EQ(Read({{"run_start", 0}, {"run_stop", 9}}).train_samples_per_s(), std::nullopt);
}

TEST(RunTimesTest, EvaluationBesideTheEpochsIsNoPartOfThem) {
  const RunTimes times = Read({{"run_start", 0},
                               {"epoch_start", 0},
                               {"epoch_stop", 10000},
                               {"eval_start", 9000},
                               {"eval_stop", 13000},
                               {"run_stop", 13000}});

  EXPECT_EQ(times.evaluation_s, 4.0);
  EXPECT_EQ(times.evaluation_in_epoch_s, 1.0);
  EXPECT_EQ(times.training_s(), 9.0);
}

TEST(RunTimesTest, AnEpochCutShortTrainsButDoesNotCountForThroughput) {
  const RunTimes times = Read({{"run_start", 0},
                               {"train_samples", 0, "100"},
                               {"epoch_start", 0},
                               {"epoch_stop", 10000},
                               {"epoch_start", 10000},
                               {"eval_start", 13000},
                               {"eval_stop", 14000},
                               {"run_stop", 15000}});

  EXPECT_EQ(times.epochs, 2);
  EXPECT_EQ(times.closed_epochs, 1);
  EXPECT_EQ(times.open_epoch_s, 5.0);
  EXPECT_EQ(times.training_s(), 10.0);
  EXPECT_EQ(times.all_training_s(), 14.0);
  EXPECT_EQ(times.train_samples_per_s(), 10.0);
}

TEST(RunTimesTest, WhatBeginsAfterTheClockStoppedDoesNotCount) {
  std::vector<Line> lines = kSound;
  lines.insert(lines.end(), {{"epoch_start", 27000}, {"epoch_stop", 37000}, {"run_stop", 40000}});

  const RunTimes times = Read(lines);

  EXPECT_EQ(times.run_s, 26.0);
  EXPECT_EQ(times.epochs, 2);
  EXPECT_EQ(times.open_epoch_s, 0.0);
}

TEST(RunTimesTest, SwappedLinesPairByTheirOrder) {
  const RunTimes times = Read({{"run_start", 0},
                               {"epoch_start", 0},
                               {"epoch_start", 10001},
                               {"epoch_stop", 10000},
                               {"epoch_stop", 20000},
                               {"run_stop", 20000}});

  EXPECT_EQ(times.closed_epochs, 2);
  EXPECT_DOUBLE_EQ(times.epoch_s, 19.999);
}

TEST(RunTimesTest, AbsentStagingDiffersFromNone) {
  EXPECT_EQ(Read({{"run_start", 0}, {"run_stop", 1000}}).staging_s, std::nullopt);
  EXPECT_EQ(
      Read({{"run_start", 0}, {"staging_start", 10}, {"staging_stop", 10}, {"run_stop", 1000}})
          .staging_s,
      0.0);
}

TEST(RunTimesTest, StagingBeforeTheClockIsNotTimed) {
  const RunTimes times =
      Read({{"staging_start", 0}, {"staging_stop", 500}, {"run_start", 600}, {"run_stop", 1000}});

  EXPECT_EQ(times.staging_s, 0.5);
  EXPECT_FALSE(times.is_staging_timed);
}

TEST(RunTimesTest, ARunThatNeverEndedHasNoTime) {
  const RunTimes times = Read({{"run_start", 0}, {"epoch_start", 0}});

  EXPECT_EQ(times.run_s, std::nullopt);
  EXPECT_EQ(times.epochs, 1);
  EXPECT_EQ(times.open_epoch_s, 0.0);
}

TEST(RunTimesTest, DamagedLogsGiveWhatTheyHold) {
  EXPECT_EQ(Read({}).run_s, std::nullopt);
  const std::string log = Log(kSound) + ":::MLLOG {\"key\": \n:::MLLOG []\n";
  const rules::Facts facts = rules::Check(log, *rules::FindRuleSet("v0.7")).facts;
  EXPECT_EQ(ReadRunTimes(log, facts).epochs, 2);
}

}  // namespace
}  // namespace assay::analysis
