#include "common/rules/score.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/rules/check.h"
#include "common/rules/registry.h"
#include "tests/rules/oracle.h"
#include "tests/support/temp_dir.h"

namespace assay::rules {
namespace {

using ::assay::testing::OracleDir;
using ::assay::testing::ReadJsonFile;
using ::assay::testing::TempDir;
using ::assay::testing::Text;
using ::assay::testing::Unpack;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunScore Good(double minutes) {
  return {.compliant = true, .reached_target = true, .run_ms = minutes * 60000};
}

// Missed the target after `minutes`.
RunScore Missed(double minutes) {
  return {.run_ms = minutes * 60000};
}

const RuleSet& V07() {
  return *FindRuleSet("hpc-0.7.0");
}
const RuleSet& V1() {
  return *FindRuleSet("1.0.0");
}

TEST(OlympicScoreTest, LeavesOutTheFastestAndTheSlowest) {
  const std::vector<RunScore> runs = {Good(30), Good(10), Good(20), Good(40), Good(60)};

  const TimeToSolution score = Score(V1().scoring(), runs);

  EXPECT_EQ(score.minutes, 30.0);
  EXPECT_THAT(score.counted, ElementsAre(2, 0, 3));
}

TEST(OlympicScoreTest, AFailedRunStandsForTheSlowest) {
  const std::vector<RunScore> runs = {Good(30), Good(10), Missed(5), Good(20)};

  const TimeToSolution score = Score(V1().scoring(), runs);

  EXPECT_EQ(score.minutes, 25.0);
  EXPECT_EQ(score.dropped, 1);
}

TEST(OlympicScoreTest, TwoFailedRunsLeaveNoScore) {
  const std::vector<RunScore> runs = {Good(30), Missed(1), Missed(5), Good(20)};

  const TimeToSolution score = Score(V1().scoring(), runs);

  EXPECT_EQ(score.minutes, std::nullopt);
  EXPECT_THAT(score.reason, HasSubstr("2 runs failed"));
}

TEST(OlympicScoreTest, TooFewRunsLeaveNoScore) {
  EXPECT_EQ(Score(V1().scoring(), {}).minutes, std::nullopt);
  EXPECT_EQ(Score(V1().scoring(), std::vector<RunScore>{Good(1)}).minutes, std::nullopt);
  EXPECT_EQ(Score(V1().scoring(), std::vector<RunScore>{Good(1), Good(2)}).minutes, std::nullopt);
  EXPECT_EQ(Score(V1().scoring(), std::vector<RunScore>{Good(1), Good(2), Good(3)}).minutes, 2.0);
}

TEST(CountsReachedTargetTest, RanksAMissedRunLastHoweverShort) {
  const std::vector<RunScore> runs = {Good(30), Good(10), Missed(5), Good(20), Good(40)};

  EXPECT_EQ(Score(V07().scoring(), runs).minutes, 30.0);
}

TEST(CountsReachedTargetTest, ARunWithoutStopRanksLast) {
  const std::vector<RunScore> runs = {Good(30), Good(10), {.reached_target = true}, Good(20)};

  EXPECT_EQ(Score(V07().scoring(), runs).minutes, 25.0);
  EXPECT_EQ(Score(V07().scoring(), std::vector<RunScore>{Good(1), Missed(2), Missed(3)}).minutes,
            std::nullopt);
}

// Goal: the sentence is true in every case. In the round v0.7 a run may fail the check and still
// count.
TEST(DescribeScoreTest, SaysWhichRunsWereDroppedAndWhy) {
  const Scoring& v07 = V07().scoring();
  const Scoring& v1 = V1().scoring();
  const Scoring lenient = {.counts = v1.counts, .failed_runs_allowed = 2};
  const std::vector<RunScore> good = {Good(1), Good(2), Good(3)};
  const std::vector<RunScore> one_missed = {Good(1), Good(2), Missed(3)};
  const std::vector<RunScore> two_missed = {Good(1), Good(2), Missed(3), Missed(4)};
  const std::string all = "olympic mean of 3 runs: best and worst dropped, all converged";

  EXPECT_EQ(DescribeScore(v1, Score(v1, good), 3), all);
  EXPECT_EQ(DescribeScore(v07, Score(v07, good), 3), all);
  EXPECT_EQ(DescribeScore(v1, Score(v1, one_missed), 3),
            "olympic mean of 3 runs: best dropped, and as the worst the one that failed the check");
  EXPECT_EQ(DescribeScore(v07, Score(v07, one_missed), 3),
            "olympic mean of 3 runs: best dropped, and as the worst the one that had no time to "
            "solution");
  EXPECT_EQ(DescribeScore(lenient, Score(lenient, two_missed), 4),
            "olympic mean of 4 runs: best dropped, and the 2 that failed the check");
}

// Checks and scores the result files of a directory.
TimeToSolution ScoreDirectory(const std::string& directory, const RuleSet& rules) {
  std::vector<RunScore> runs;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
  CHECK_OK(names.status());
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, "result_") || !absl::EndsWith(name, ".txt")) continue;
    const absl::StatusOr<std::string> log = ReadFile(JoinPath(directory, name));
    CHECK_OK(log.status());
    runs.push_back(ScoreOf(Check(*log, rules)));
  }
  return Score(rules.scoring(), runs);
}

// Table 4 of the MLPerf HPC paper (time to solution in minutes), as published. The cell of
// Fugaku-512 (268.77) cannot come from the public logs, which give 249.35 under every drop rule;
// here it stands as recomputed.
struct Published {
  const char* directory;
  double minutes;
};
constexpr Published kTable4[] = {
    {"CSCS/results/daint_gpu_n128_tf2.2.0/cosmoflow", 461.01},
    {"CSCS/results/daint_gpu_n256_tf2.2.0/cosmoflow", 327.01},
    {"Fujitsu/results/abci_1024xV100_pytorch_closed/deepcam", 11.71},
    {"Fujitsu/results/abci_512xV100_tensorflow_closed/cosmoflow", 34.42},
    {"RIKEN/results/fugaku_512xA64FX_tensorflow_closed/cosmoflow", 249.35},
    {"Fujitsu/results/fugaku_8192xA64FX_tensorflow_closed/cosmoflow", 101.49},
    {"LBNL/results/corigpu_n64_pt1.6.0/deepcam", 139.29},
    {"LBNL/results/corigpu_n64_tf1.15.0/cosmoflow", 364.73},
    {"LBNL/results/coriknl_n512_tf1.15.2/cosmoflow", 536.06},
    {"NCSA/results/halv100_n16_tf1.15.0/cosmoflow", 265.59},
    {"TACC/results/frontera_rtx_n16_tf1.15.2_lbs1/cosmoflow", 602.23},
    {"Fujitsu/results/abci_1024xV100_fjpytorch_open/deepcam", 10.49},
    {"Fujitsu/results/abci_2048xV100_tensorflow_open/cosmoflow", 13.21},
    {"Fujitsu/results/fugaku_16384xA64FX_tensorflow_open/cosmoflow", 30.07},
    {"LBNL/results/coriknl_n1024_tf1.15.2/cosmoflow", 419.69},
};

TEST(ScoreTest, PublishedV07FiguresComeOutToEveryDigit) {
  REQUIRE_ORACLE();
  const TempDir dir;
  Unpack("hpc_results_v0.7.tar.xz", dir.path());
  for (const Published& row : kTable4) {
    const TimeToSolution score = ScoreDirectory(
        dir.Path(absl::StrCat("hpc_results_v0.7/", row.directory)), *FindRuleSet("hpc-0.7.0"));

    ASSERT_TRUE(score.minutes) << row.directory << score.reason;
    EXPECT_NEAR(*score.minutes, row.minutes, 0.005) << row.directory;
  }
  std::cout << std::size(kTable4) << " scores of table 4 equal, one of them as recomputed\n";
}

// Compares with the official summarizer; returns how many sets agree.
int CompareRound(const std::string& round, const RuleSet& rules, const std::string& target) {
  Unpack(absl::StrCat("hpc_results_", round, ".tar.xz"), target);
  const JsonValue oracle =
      ReadJsonFile(absl::StrCat(OracleDir(), "/official/scores_", round, ".json"));
  int equal = 0;
  for (const JsonValue& entry : *oracle.Find("entries")->AsList()) {
    if (Text(entry, "scaling") != "strong") continue;
    const std::string level = round == "v0.7" ? "" : "strong/";
    const TimeToSolution score = ScoreDirectory(
        absl::StrCat(target, "/hpc_results_", round, "/", Text(entry, "org"), "/results/",
                     Text(entry, "system"), "/", level, Text(entry, "benchmark")),
        rules);
    const std::optional<double> official = entry.Find("official_pass1_min")->ToDouble();
    EXPECT_EQ(official.has_value(), score.minutes.has_value()) << Text(entry, "system");
    if (official && score.minutes) {
      EXPECT_NEAR(*score.minutes, *official, 1e-9) << Text(entry, "system");
      EXPECT_DOUBLE_EQ(*score.minutes, *entry.Find("score_own_rule_min")->ToDouble());
    }
    equal += official.has_value() == score.minutes.has_value() &&
             std::fabs(official.value_or(0) - score.minutes.value_or(0)) < 1e-9;
  }
  std::cout << round << ": " << equal << " scores equal the official summarizer's\n";
  return equal;
}

TEST(ScoreTest, EqualsTheOfficialSummarizer) {
  REQUIRE_ORACLE();
  const TempDir dir;
  EXPECT_GE(CompareRound("v0.7", *FindRuleSet("1.0.0"), dir.path()), 15);
  EXPECT_GE(CompareRound("v1.0", *FindRuleSet("1.0.0"), dir.path()), 15);
}

}  // namespace
}  // namespace assay::rules
