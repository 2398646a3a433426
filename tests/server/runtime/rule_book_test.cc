#include "server/runtime/rule_book.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::runtime {
namespace {

using ::testing::Contains;
using ::testing::Field;
using testing::IsOk;
using ::testing::Not;

constexpr int64_t kRunStartMs = 1'700'000'000'000;

// A log with nothing but staging and run_start: enough to judge the clock.
std::string Log(bool is_staging_first) {
  const auto line = [](const std::string& key, int64_t time_ms) {
    return ":::MLLOG {\"namespace\": \"\", \"time_ms\": " + std::to_string(time_ms) +
           ", \"event_type\": \"INTERVAL_START\", \"key\": \"" + key +
           "\", \"value\": null, \"metadata\": {\"file\": \"x\", \"lineno\": 1}}\n";
  };
  const std::string staging =
      line("staging_start", kRunStartMs - 20) + line("staging_stop", kRunStartMs - 10);
  const std::string start = line("run_start", kRunStartMs);
  return is_staging_first ? staging + start : start + staging;
}

core::RunFacts Judge(const std::string& round, bool is_staging_first,
                     std::optional<int64_t> touch_us) {
  const auto book = LoadRuleBook({});
  EXPECT_THAT(book, IsOk());
  core::Submission submission;
  submission.spec.round = round;
  submission.spec.benchmark = "cosmoflow";
  submission.spec.division = "open";
  core::Run run;
  run.nodes.resize(1);
  run.first_touch_us = touch_us;
  return (*book)->CheckLog(Log(is_staging_first), submission, run);
}

auto HasRule(const std::string& rule) {
  return Field(&core::RunFacts::findings, Contains(Field(&core::Finding::rule, rule)));
}

// Staging off the clock is no excuse: the agent then watches the staged copy.
TEST(RuleBookTest, ATouchBeforeRunStartIsAViolationInEveryRound) {
  const int64_t early_us = (kRunStartMs - 50) * 1000;

  EXPECT_THAT(Judge("hpc-3.0.0", /*is_staging_first=*/true, early_us), HasRule("R-TIM-001"));
  EXPECT_THAT(Judge("hpc-2.0.0", /*is_staging_first=*/false, early_us), HasRule("R-TIM-001"));
  EXPECT_FALSE(*Judge("hpc-3.0.0", true, early_us).is_compliant);
}

TEST(RuleBookTest, ATouchAfterRunStartIsFine) {
  const int64_t later_us = kRunStartMs * 1000 + 700;

  EXPECT_THAT(Judge("hpc-3.0.0", /*is_staging_first=*/true, later_us), Not(HasRule("R-TIM-001")));
}

TEST(RuleBookTest, ARunThatNobodyWitnessedSaysSo) {
  EXPECT_THAT(Judge("hpc-3.0.0", /*is_staging_first=*/true, std::nullopt), HasRule("R-TIM-003"));
}

}  // namespace
}  // namespace assay::runtime
