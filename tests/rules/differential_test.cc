// Equality with the official checker: every stored verdict, class of error, warning and fact is
// compared with ours, over all published logs of two rounds and the synthetic cases.

#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
using ::assay::testing::ReadJsonLines;
using ::assay::testing::TempDir;
using ::assay::testing::Text;
using ::assay::testing::Unpack;

std::set<std::string> Strings(const JsonValue& row, absl::string_view name) {
  std::set<std::string> result;
  for (const JsonValue& element : *row.Find(name)->AsList())
    result.insert(*element.AsString());
  return result;
}

std::set<std::string> Classes(const CheckResult& result) {
  std::set<std::string> classes;
  for (const Finding& finding : result.findings) {
    if (finding.severity == Severity::kError) classes.insert(finding.error_class);
  }
  return classes;
}

std::set<std::string> WarnedKeys(const CheckResult& result) {
  std::set<std::string> keys;
  for (const Finding& finding : result.findings) {
    if (finding.severity == Severity::kWarning) keys.insert(finding.key);
  }
  return keys;
}

struct Tally {
  int logs = 0, verdicts_equal = 0, classes_equal = 0, warnings_equal = 0;
};

std::ostream& operator<<(std::ostream& out, const Tally& tally) {
  return out << tally.logs << " logs: " << tally.verdicts_equal << " verdicts, "
             << tally.classes_equal << " sets of error classes, " << tally.warnings_equal
             << " sets of warnings equal\n";
}

// What a node says of the log in the end when it has seen it line by line.
CheckResult Follow(absl::string_view log, const RuleSet& rules) {
  LiveChecker checker(rules);
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    checker.AddLine(log.substr(0, end));
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return checker.Finish();
}

// Compares one log with its row and counts what agrees.
void Compare(const std::string& log, const JsonValue& row, Tally* tally) {
  const RuleSet* rules = FindRuleSet(Text(row, "ruleset"));
  ASSERT_NE(rules, nullptr);
  const CheckResult result = Check(log, *rules);
  const std::set<std::string> expected = Strings(row, "errors");
  ++tally->logs;
  tally->verdicts_equal += (Text(row, "verdict") == "pass") == result.pass;
  tally->classes_equal += expected == Classes(result);
  tally->warnings_equal += Strings(row, "warnings") == WarnedKeys(result);
  EXPECT_EQ(Text(row, "verdict") == "pass", result.pass) << Text(row, "what");
  EXPECT_EQ(expected, Classes(result)) << Text(row, "what") << Text(row, "path");
  // The official tool shows no warnings once it has died.
  EXPECT_EQ(Strings(row, "warnings"), WarnedKeys(result)) << Text(row, "what");

  const CheckResult live = Follow(log, *rules);
  EXPECT_EQ(Text(row, "verdict") == "pass", live.pass) << "live: " << Text(row, "what");
  EXPECT_EQ(expected, Classes(live)) << "live: " << Text(row, "what") << Text(row, "path");
}

void ExpectFact(const JsonValue& row, absl::string_view name, std::optional<double> ours) {
  const JsonValue* theirs = row.Find(name);
  ASSERT_NE(theirs, nullptr) << name;
  EXPECT_EQ(theirs->ToDouble(), ours) << name << " of " << Text(row, "path");
}

void CompareFacts(const Facts& facts, const JsonValue& row) {
  EXPECT_EQ(Text(row, "benchmark"), facts.benchmark);
  EXPECT_EQ(Text(row, "division"), facts.division);
  EXPECT_EQ(Text(row, "run_status"), facts.run_status);
  EXPECT_EQ(row.Find("n_mllog_lines")->AsInt64(), facts.record_count);
  ExpectFact(row, "run_time_ms", facts.run_ms());
  ExpectFact(row, "run_start_ms", facts.run_start_ms);
  ExpectFact(row, "run_stop_ms", facts.run_stop_ms);
  ExpectFact(row, "init_ms", facts.init_ms);
  ExpectFact(row, "staging_ms", facts.staging_ms);
  ExpectFact(row, "epochs", static_cast<double>(facts.epochs));
  ExpectFact(row, "final_quality", facts.quality);
  ExpectFact(row, "best_quality", facts.best_quality);
  EXPECT_EQ(Strings(row, "errors").count(absl::StrCat("no_line_passes:", Text(row, "quality_key"))),
            facts.reached_target ? 0u : 1u)
      << Text(row, "path");
}

void CompareRound(const std::string& round) {
  const TempDir dir;
  Unpack(absl::StrCat("hpc_results_", round, ".tar.xz"), dir.path());
  Tally tally;
  for (const JsonValue& row :
       ReadJsonLines(absl::StrCat(OracleDir(), "/official/verdicts_", round, ".jsonl"))) {
    const absl::StatusOr<std::string> log =
        ReadFile(dir.Path(absl::StrCat("hpc_results_", round, "/", Text(row, "path"))));
    ASSERT_TRUE(log.ok()) << log.status();
    Compare(*log, row, &tally);
    CompareFacts(Check(*log, *FindRuleSet(Text(row, "ruleset"))).facts, row);
  }
  std::cout << round << ": " << tally;
  EXPECT_GT(tally.logs, 100);
}

TEST(DifferentialTest, RoundV07AgreesWithTheOfficialChecker) {
  REQUIRE_ORACLE();
  CompareRound("v0.7");
}

TEST(DifferentialTest, RoundV10AgreesWithTheOfficialChecker) {
  REQUIRE_ORACLE();
  CompareRound("v1.0");
}

TEST(DifferentialTest, SyntheticCasesAgreeWithTheOfficialChecker) {
  REQUIRE_ORACLE();
  const TempDir dir;
  Unpack("cases.tar.xz", dir.path());
  Tally tally;
  int strict_equal = 0;
  for (const JsonValue& row : ReadJsonLines(OracleDir() + "/official/cases.jsonl")) {
    const absl::StatusOr<std::string> log = ReadFile(dir.Path("cases/" + Text(row, "file")));
    ASSERT_TRUE(log.ok()) << log.status();
    Compare(*log, row, &tally);
    const RuleSet& rules = *FindRuleSet(Text(row, "ruleset"));
    const bool strict_pass = Check(*log, rules, {.warnings_are_errors = true}).pass;
    EXPECT_EQ(Text(row, "verdict_werror") == "pass", strict_pass) << Text(row, "what");
    strict_equal += (Text(row, "verdict_werror") == "pass") == strict_pass;
  }
  std::cout << "cases: " << tally << "cases: " << strict_equal
            << " verdicts with warnings as errors equal\n";
  EXPECT_GT(tally.logs, 900);
}

// The lenient round accepts every published v0.7 log whose run met its target, and refuses the
// three that did not.
TEST(DifferentialTest, LenientRoundAcceptsWhatWasPublished) {
  REQUIRE_ORACLE();
  const TempDir dir;
  Unpack("hpc_results_v0.7.tar.xz", dir.path());
  int passed = 0;
  for (const JsonValue& row : ReadJsonLines(OracleDir() + "/official/verdicts_v0.7.jsonl")) {
    const absl::StatusOr<std::string> log =
        ReadFile(dir.Path("hpc_results_v0.7/" + Text(row, "path")));
    ASSERT_TRUE(log.ok()) << log.status();
    const CheckResult result = Check(*log, *FindRuleSet("0.7.0"));
    passed += result.pass;
    EXPECT_EQ(result.pass, result.facts.reached_target) << Text(row, "path");
  }
  EXPECT_EQ(passed, 132);
}

}  // namespace
}  // namespace assay::rules
