// Equality with the official checker of reference convergence points: every statistic, pruning,
// interpolation, p-value and verdict that was stored.

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/rcp.h"
#include "common/rules/registry.h"
#include "common/rules/t_test.h"
#include "tests/rules/oracle.h"

namespace assay::rules {
namespace {

using ::assay::testing::OracleDir;
using ::assay::testing::ReadJsonFile;
using ::assay::testing::Text;

double Number(const JsonValue& row, absl::string_view name) {
  const JsonValue* member = row.Find(name);
  CHECK(member != nullptr) << "name=" << name;
  return member->ToDouble().value_or(std::nan(""));
}

std::vector<double> Numbers(const JsonValue& row, absl::string_view name) {
  std::vector<double> numbers;
  for (const JsonValue& element : *row.Find(name)->AsList())
    numbers.push_back(*element.ToDouble());
  return numbers;
}

ReferenceMode ModeOf(const JsonValue& row) {
  return Text(row, "mode") == "full_rcps" ? ReferenceMode::kFull : ReferenceMode::kPruned;
}

struct RcpTally {
  int points = 0, interpolations = 0, checks = 0, p_values = 0, p_values_exact = 0;
};

class RcpDifferentialTest : public ::testing::Test {
 protected:
  void ComparePoints(const JsonValue& set, RcpTally* tally) const {
    const std::vector<ReferencePoint> points = ReferencePoints(*FindRuleSet(rule_set_), benchmark_);
    const JsonList& records = *set.Find("records")->AsList();
    ASSERT_EQ(points.size(), records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(points[i].name, Text(records[i], "name"));
      EXPECT_EQ(static_cast<double>(points[i].batch_size), Number(records[i], "BS"));
      // Bit for bit.
      EXPECT_EQ(points[i].mean, Number(records[i], "mean"));
      EXPECT_EQ(points[i].stdev, Number(records[i], "stdev"));
      EXPECT_EQ(points[i].min_epochs, Number(records[i], "min_epochs"));
      EXPECT_EQ(points[i].max_speedup(), Number(records[i], "max_speedup"));
      EXPECT_EQ(points[i].survives_pruning, records[i].Find("kept")->AsBool());
      ++tally->points;
    }
  }

  void CompareInterpolations(const JsonValue& set, RcpTally* tally) const {
    const auto runs = static_cast<int>(Number(set, "submission_runs"));
    const std::vector<ReferencePoint> points = ReferencePoints(*FindRuleSet(rule_set_), benchmark_);
    for (const JsonValue& row : *set.Find("interp")->AsList()) {
      const ReferencePoint* low = nullptr;
      const ReferencePoint* high = nullptr;
      for (const ReferencePoint& point : points) {
        if (static_cast<double>(point.batch_size) == Number(row, "low")) low = &point;
        if (static_cast<double>(point.batch_size) == Number(row, "high")) high = &point;
      }
      ASSERT_TRUE(low != nullptr && high != nullptr);
      const ReferencePoint point =
          Interpolate(*low, *high, static_cast<int64_t>(Number(row, "BS")), runs);
      EXPECT_EQ(point.mean, Number(row, "mean"));
      EXPECT_EQ(point.stdev, Number(row, "stdev"));
      EXPECT_EQ(point.min_epochs, Number(row, "min_epochs"));
      EXPECT_EQ(point.max_speedup(), Number(row, "max_speedup"));
      ++tally->interpolations;
    }
  }

  void CompareChecks(const JsonValue& set, RcpTally* tally) const {
    for (const JsonValue& row : *set.Find("checks")->AsList()) {
      std::vector<ConvergenceRun> runs;
      for (const double epochs : Numbers(row, "epochs"))
        runs.push_back(
            {.batch_size = row.Find("bs")->AsInt64(), .benchmark = benchmark_, .epochs = epochs});
      const ConvergenceVerdict verdict =
          CheckConvergence(*FindRuleSet(rule_set_), SubmissionOf(runs), ModeOf(row));
      const std::string what = absl::StrCat(Text(row, "mode"), " BS ", Number(row, "bs"));
      EXPECT_EQ(verdict.exception, "") << what;
      EXPECT_EQ(verdict.passed, row.Find("passed")->AsBool()) << what;
      EXPECT_EQ(verdict.message, Text(row, "msg")) << what;
      EXPECT_EQ(verdict.normalization, Number(row, "norm")) << what;
      // The p-value says the same, but where the minimum's tolerance decides.
      if (verdict.p_value && verdict.reference->stdev > 0 &&
          std::fabs(verdict.olympic_mean - verdict.reference->min_epochs) > 1e-4) {
        EXPECT_EQ(*verdict.p_value > 0.05, verdict.passed) << what;
      }
      ++tally->checks;
    }
  }

  static void ComparePValues(const JsonValue& set, RcpTally* tally) {
    for (const JsonValue& row : *set.Find("p_value")->AsList()) {
      const double p = OneSidedPValue({.mean = Number(row, "subm_mean"),
                                       .stdev = Number(row, "subm_stdev"),
                                       .count = static_cast<int>(Number(row, "subm_num"))},
                                      {.mean = Number(row, "ref_mean"),
                                       .stdev = Number(row, "ref_stdev"),
                                       .count = static_cast<int>(Number(row, "ref_num"))});
      const double official = Number(row, "p");
      EXPECT_NEAR(p / official, 1, 2e-13);
      EXPECT_EQ(p > 0.05, row.Find("larger_than_alpha")->AsBool());
      tally->p_values_exact += p == official;
      ++tally->p_values;
    }
  }

  std::string rule_set_, benchmark_;
};

TEST_F(RcpDifferentialTest, EqualsTheOfficialChecker) {
  REQUIRE_ORACLE();
  const JsonValue oracle = ReadJsonFile(OracleDir() + "/official/rcp_oracle.json");
  RcpTally tally;
  for (const JsonValue& set : *oracle.Find("sets")->AsList()) {
    rule_set_ = absl::StrCat("hpc-", Text(set, "ruleset"));
    benchmark_ = Text(set, "benchmark");
    SCOPED_TRACE(absl::StrCat(rule_set_, " ", benchmark_));
    ComparePoints(set, &tally);
    CompareInterpolations(set, &tally);
    CompareChecks(set, &tally);
    ComparePValues(set, &tally);
  }
  std::cout << tally.points << " reference points, " << tally.interpolations << " interpolations, "
            << tally.checks << " checks equal to the last bit; " << tally.p_values
            << " p-values equal to 2e-13, " << tally.p_values_exact << " of them to the last bit\n";
  EXPECT_GT(tally.checks, 1000);
}

}  // namespace
}  // namespace assay::rules
