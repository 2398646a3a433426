#include "common/rules/rcp.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/registry.h"
#include "common/rules/t_test.h"
#include "tests/rules/sample_log.h"

namespace assay::rules {
namespace {

using ::assay::testing::CosmoflowLog;
using ::assay::testing::SampleLog;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Upper 5 % points of Student's t, as printed in every table of it.
TEST(TTestTest, AgreesWithTheTablesOfStudent) {
  const std::vector<std::pair<int, double>> table = {{1, 6.3138},  {2, 2.9200},  {5, 2.0150},
                                                     {10, 1.8125}, {24, 1.7109}, {60, 1.6706}};
  for (const auto& [freedom, t] : table) {
    // A sample of one and one of freedom + 1 with deviation 1: t = difference / error.
    const int count = freedom + 1;
    const double error = std::sqrt(1 + 1.0 / count);
    const SampleSummary one = {.mean = -t * error, .stdev = 1, .count = 1};
    EXPECT_NEAR(OneSidedPValue(one, {.mean = 0, .stdev = 1, .count = count}), 0.05, 1e-5)
        << freedom;
  }
}

TEST(TTestTest, WithoutSpreadOnlyTheMeansDecide) {
  const SampleSummary nine = {.mean = 9, .count = 3};
  EXPECT_EQ(OneSidedPValue(nine, nine), 1);
  EXPECT_EQ(OneSidedPValue({.mean = 8.9, .count = 3}, nine), 0);
}

TEST(TTestTest, SumsAnyNumberOfValues) {
  for (const int count : {0, 1, 7, 8, 9, 127, 128, 129, 640, 1000}) {
    std::vector<double> values;
    for (int i = 1; i <= count; ++i)
      values.push_back(i);
    EXPECT_EQ(NumpySum(values), count * (count + 1) / 2) << count;
  }
}

// The example worked out in the rules: 22.83333, deviation 0.871780, 18 and 8 runs.
TEST(RcpTest, MinimumIsWhereTheTestStopsToTellThemApart) {
  const double minimum = MinAcceptableMean(22.833333333333332, 0.8717797887081347, 18, 10);

  EXPECT_DOUBLE_EQ(minimum, 22.19953378041585);
  const double closed_form =
      22.833333333333332 - 1.7108821 * 0.8717797887081347 * std::sqrt(1.0 / 18 + 1.0 / 8);
  EXPECT_NEAR(minimum, closed_form, 1e-4);
}

TEST(RcpTest, PruningDropsWhatLiesAboveItsNeighbours) {
  std::vector<int64_t> kept;
  for (const ReferencePoint& point : ReferencePoints(*FindRuleSet("hpc-2.0.0"), "cosmoflow"))
    if (point.survives_pruning) kept.push_back(point.batch_size);

  EXPECT_THAT(kept, ElementsAre(32, 512, 1024));
  EXPECT_TRUE(ReferencePoints(*FindRuleSet("hpc-0.7.0"), "cosmoflow").empty());
  EXPECT_TRUE(ReferencePoints(*FindRuleSet("hpc-2.0.0"), "openfold").empty());
}

ConvergenceSubmission Submission(int64_t batch_size, std::vector<double> epochs) {
  std::vector<ConvergenceRun> runs;
  for (const double epoch : epochs)
    runs.push_back({.batch_size = batch_size, .benchmark = "deepcam", .epochs = epoch});
  return SubmissionOf(runs);
}

TEST(RcpTest, AMeasuredBatchSizeIsComparedWithItsPoint) {
  const ConvergenceVerdict verdict = CheckConvergence(
      *FindRuleSet("hpc-1.0.0"), Submission(2048, {22, 22, 23, 22, 20}), ReferenceMode::kPruned);

  EXPECT_TRUE(verdict.passed);
  EXPECT_EQ(verdict.message, "RCP found");
  EXPECT_EQ(verdict.match, ReferenceMatch::kExact);
  EXPECT_DOUBLE_EQ(verdict.normalization, 22.625 / 22);
  EXPECT_EQ(verdict.scaling_factor(), verdict.normalization);
  EXPECT_GT(*verdict.p_value, 0.05);
}

TEST(RcpTest, SignificantlyFasterFails) {
  const ConvergenceVerdict verdict = CheckConvergence(
      *FindRuleSet("hpc-1.0.0"), Submission(2048, {20, 20, 20, 20, 20}), ReferenceMode::kPruned);

  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.message, "RCP found");
  EXPECT_EQ(SummaryWord(verdict), "Fail");
  EXPECT_EQ(verdict.scaling_factor(), std::nullopt);
  EXPECT_LT(*verdict.p_value, 0.05);
}

TEST(RcpTest, ALargerBatchThanAnyNeedsAPointOfItsOwn) {
  const ConvergenceVerdict verdict = CheckConvergence(
      *FindRuleSet("hpc-1.0.0"), Submission(4096, {90, 90, 90, 90, 90}), ReferenceMode::kPruned);

  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.message, "Missing RCP, please submit RCP with BS = 4096");
  EXPECT_EQ(SummaryWord(verdict), "Missing");
}

TEST(RcpTest, OneRunMayFailToConvergeTwoMayNot) {
  EXPECT_TRUE(CheckConvergence(*FindRuleSet("hpc-1.0.0"),
                               Submission(128, {9, 9, 9, 9, kNotConverged}), ReferenceMode::kPruned)
                  .passed);
  std::vector<ConvergenceRun> runs(5, {.batch_size = 128, .benchmark = "deepcam", .epochs = 9});
  runs[1].epochs = runs[3].epochs = std::nullopt;
  const ConvergenceVerdict verdict =
      CheckConvergence(*FindRuleSet("hpc-1.0.0"), SubmissionOf(runs), ReferenceMode::kPruned);
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.message, "Insufficient convergence");
}

TEST(RcpTest, RunsOfDifferentBatchSizesAreNoSubmission) {
  const std::vector<ConvergenceRun> runs = {
      {.batch_size = 128, .benchmark = "deepcam", .epochs = 9},
      {.batch_size = 256, .benchmark = "deepcam", .epochs = 9}};
  EXPECT_THAT(SubmissionOf(runs).exception, HasSubstr("differ"));
  EXPECT_FALSE(SubmissionOf({}).exception.empty());
}

TEST(RcpTest, ABenchmarkWithoutPointsFails) {
  const std::vector<ConvergenceRun> runs(
      10, {.batch_size = 128, .benchmark = "openfold", .epochs = 90000});
  const ConvergenceVerdict verdict =
      CheckConvergence(*FindRuleSet("hpc-2.0.0"), SubmissionOf(runs), ReferenceMode::kFull);
  EXPECT_EQ(verdict.message, "Cannot find any RCPs");
  EXPECT_EQ(SummaryWord(verdict), "No RCP");
}

TEST(ReadConvergenceTest, TakesTheLastEpochBeforeTheEnd) {
  SampleLog log = CosmoflowLog();
  log.InsertAfter("eval_error", {"eval_error", "0.11", "{\"epoch_num\": 2.0004999}"});
  const ConvergenceRun run = ReadConvergence(log.Text());

  EXPECT_EQ(run.exception, "");
  EXPECT_EQ(run.batch_size, 64);
  EXPECT_EQ(run.benchmark, "cosmoflow");
  EXPECT_EQ(run.epochs, 2.0);
}

TEST(ReadConvergenceTest, OnlySuccessIsConvergence) {
  SampleLog log = CosmoflowLog();
  EXPECT_EQ(ReadConvergence(log.SetMetadata("run_stop", "{\"status\": \"aborted\"}").Text()).epochs,
            std::nullopt);
  EXPECT_EQ(ReadConvergence(log.SetMetadata("run_stop", "{}").Text()).exception,
            "KeyError('status')");
  EXPECT_EQ(ReadConvergence(log.Remove("run_stop").Text()).epochs, std::nullopt);
  EXPECT_EQ(ReadConvergence(log.SetMetadata("eval_error", "{}").Text()).exception,
            "KeyError('epoch_num')");
}

}  // namespace
}  // namespace assay::rules
