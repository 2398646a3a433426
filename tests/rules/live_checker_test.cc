#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/check.h"
#include "common/rules/registry.h"
#include "tests/rules/sample_log.h"

namespace assay::rules {
namespace {

using ::assay::testing::CosmoflowLog;
using ::assay::testing::DeepcamLog;
using ::assay::testing::SampleLog;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// "line:class" of every finding, where `line` is the line with whose arrival it came.
std::vector<std::string> Follow(const SampleLog& log, absl::string_view round = "3.0.0") {
  LiveChecker checker(*FindRuleSet(round));
  std::vector<std::string> seen;
  int number = 0;
  for (const std::string& line : log.Lines()) {
    ++number;
    for (const Finding& finding : checker.AddLine(line)) {
      seen.push_back(absl::StrCat(number, ":", finding.error_class));
    }
  }
  return seen;
}

TEST(LiveCheckerTest, ACleanRunGivesNoFindings) {
  EXPECT_THAT(Follow(CosmoflowLog()), IsEmpty());
  EXPECT_THAT(Follow(DeepcamLog()), IsEmpty());
}

TEST(LiveCheckerTest, AViolationComesWithItsLine) {
  EXPECT_THAT(Follow(CosmoflowLog().Set("opt_name", "\"adamw\"")),
              ElementsAre("13:check_failed:opt_name"));
  EXPECT_THAT(Follow(CosmoflowLog().Append({"global_batch_size", "1"})),
              ElementsAre("27:exactly_one_many_different:global_batch_size"));
}

TEST(LiveCheckerTest, LinesBeforeTheirConfigIsKnownAreJudgedOnceItIs) {
  // submission_benchmark is line 1 but matters only with submission_division, line 3.
  EXPECT_THAT(Follow(CosmoflowLog().Set("submission_benchmark", "\"resnet\"")),
              ElementsAre("3:check_failed:submission_benchmark",
                          "3:config_missing:closed_resnet.yaml", "3:crash:FileNotFoundError"));
}

TEST(LiveCheckerTest, ParseErrorsComeAtOnce) {
  LiveChecker checker(*FindRuleSet("3.0.0"));

  EXPECT_THAT(checker.AddLine("free text"), IsEmpty());
  const std::vector<Finding> findings = checker.AddLine(":::MLLOG {");

  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].line, 2);
  EXPECT_EQ(findings[0].error_class, "parse_errors");
}

// The words are the official checker's; differential_test.cc compares all its stored verdicts.
TEST(LiveCheckerTest, FinishJudgesTheWholeLog) {
  LiveChecker good(*FindRuleSet("3.0.0"));
  for (const std::string& line : CosmoflowLog().Lines())
    good.AddLine(line);
  EXPECT_TRUE(good.Finish().pass);

  LiveChecker bad(*FindRuleSet("3.0.0"));
  for (const std::string& line : CosmoflowLog().Remove("run_stop").Set("opt_name", "7").Lines())
    bad.AddLine(line);
  const CheckResult result = bad.Finish();
  EXPECT_FALSE(result.pass);
  std::vector<std::string> classes;
  for (const Finding& finding : result.findings)
    classes.push_back(finding.error_class);
  EXPECT_THAT(classes, UnorderedElementsAre("missing:run_stop", "check_failed:opt_name"));
}

TEST(LiveCheckerTest, ALoneCarriageReturnEndsALineHereToo) {
  const std::vector<std::string> lines = CosmoflowLog().Lines();
  std::string joined;
  for (const std::string& line : lines)
    joined += line + "\r";
  LiveChecker checker(*FindRuleSet("3.0.0"));

  EXPECT_THAT(checker.AddLine(joined), IsEmpty());
  EXPECT_TRUE(checker.Finish().pass);
  EXPECT_EQ(checker.facts().record_count, static_cast<int64_t>(lines.size()));
}

TEST(LiveCheckerTest, FactsGrowWithTheLog) {
  LiveChecker checker(*FindRuleSet("3.0.0"));
  std::vector<std::string> lines = CosmoflowLog().Lines();
  lines.pop_back();  // run_stop

  for (const std::string& line : lines)
    checker.AddLine(line);

  EXPECT_TRUE(checker.facts().run_start_ms.has_value());
  EXPECT_FALSE(checker.facts().run_stop_ms.has_value());
  EXPECT_EQ(checker.facts().quality, 0.12);
}

}  // namespace
}  // namespace assay::rules
