// The quirks of the reference algorithm, each in the smallest log that shows it. Expected classes
// are the official checker's (rules specification, section 2; case numbers in its cases.jsonl).

#include "common/rules/check.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/registry.h"
#include "tests/rules/sample_log.h"

namespace assay::rules {
namespace {

using ::assay::testing::CosmoflowLog;
using ::assay::testing::DeepcamLog;
using ::assay::testing::SampleLog;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kEpoch[] = "{\"epoch_num\": 1}";

CheckResult Judge(const SampleLog& log, absl::string_view round = "1.0.0") {
  return Check(log.Text(), *FindRuleSet(round));
}

std::set<std::string> Classes(const CheckResult& result) {
  std::set<std::string> classes;
  for (const Finding& finding : result.findings) {
    if (finding.severity == Severity::kError) classes.insert(finding.error_class);
  }
  EXPECT_EQ(classes.empty(), result.pass);
  return classes;
}

std::set<std::string> ClassesOf(const SampleLog& log, absl::string_view round = "1.0.0") {
  return Classes(Judge(log, round));
}

std::vector<std::string> WarnedKeys(const CheckResult& result) {
  std::vector<std::string> keys;
  for (const Finding& finding : result.findings) {
    if (finding.severity == Severity::kWarning) keys.push_back(finding.key);
  }
  return keys;
}

TEST(CheckTest, CleanLogsPassInEveryRound) {
  for (const char* round : {"1.0.0", "2.0.0", "3.0.0"}) {
    EXPECT_THAT(ClassesOf(CosmoflowLog(), round), IsEmpty()) << round;
    EXPECT_THAT(ClassesOf(DeepcamLog(), round), IsEmpty()) << round;
  }
}

TEST(CheckTest, AFindingNamesRuleLineAndRemedy) {
  const CheckResult result = Judge(CosmoflowLog().Set("opt_name", "\"adamw\""));

  ASSERT_THAT(result.findings, SizeIs(1));
  const Finding& finding = result.findings[0];
  EXPECT_EQ(finding.rule_id, "R-HP-004");
  EXPECT_EQ(finding.error_class, "check_failed:opt_name");
  EXPECT_EQ(finding.line, 13);
  EXPECT_EQ(finding.found, "\"adamw\"");
  EXPECT_THAT(Format("result_1.txt", finding),
              HasSubstr("result_1.txt:13: error R-HP-004: opt_name: expected one of \"sgd\", "
                        "\"SGD\", found \"adamw\""));
  EXPECT_EQ(result.rule_set, "hpc-1.0.0");
  EXPECT_EQ(result.digest, FindRuleSet("1.0.0")->digest());
}

// ---------------------------------------------------------------------------------- occurrence

TEST(CheckTest, ARepeatedValueIsOnlyAWarning) {
  const SampleLog log = CosmoflowLog().Append({"global_batch_size", "64.0"});

  EXPECT_THAT(ClassesOf(log), IsEmpty());
  EXPECT_THAT(WarnedKeys(Judge(log)), ElementsAre("global_batch_size"));
  EXPECT_FALSE(Check(log.Text(), *FindRuleSet("1.0.0"), {.warnings_are_errors = true}).pass);
}

TEST(CheckTest, ADifferentValueIsAnErrorEvenIfBothAreFine) {
  EXPECT_THAT(ClassesOf(CosmoflowLog().Append({"global_batch_size", "65"})),
              ElementsAre("exactly_one_many_different:global_batch_size"));
}

TEST(CheckTest, RunStartAndStopMayRepeatBecauseNullEqualsNull) {
  SampleLog log = CosmoflowLog();
  log.InsertAfter("run_start", {"run_start"});
  log.Append({"run_stop", "null", "{\"status\": \"aborted\"}"});

  EXPECT_THAT(ClassesOf(log), IsEmpty());
}

TEST(CheckTest, EqualityIsPythons) {
  const char* key = "opt_learning_rate_decay_factor";
  const std::pair<const char*, const char*> equal[] = {
      {"1", "true"},
      {"NaN", "NaN"},
      {"[NaN]", "[NaN]"},
      {"0.0", "-0.0"},
      {"{\"x\": 1, \"y\": 2}", "{\"y\": 2, \"x\": 1.0}"}};
  for (const auto& [first, second] : equal) {
    EXPECT_THAT(ClassesOf(CosmoflowLog().Set(key, first).Append({key, second})), IsEmpty())
        << first << " and " << second;
  }
  const std::pair<const char*, const char*> different[] = {
      {"\"64\"", "64"}, {"null", "0"}, {"9007199254740993", "9007199254740992.0"}};
  for (const auto& [first, second] : different) {
    EXPECT_THAT(ClassesOf(CosmoflowLog().Set(key, first).Append({key, second})),
                ElementsAre(absl::StrCat("exactly_one_many_different:", key)))
        << first << " and " << second;
  }
}

TEST(CheckTest, AlternativesAreSaidOncePerSet) {
  SampleLog log = CosmoflowLog();
  for (const char* key : {"epoch_start", "epoch_stop", "eval_start", "eval_stop"})
    log.Remove(key);

  EXPECT_THAT(ClassesOf(log), ElementsAre("missing_alternative:block_start|epoch_start",
                                          "missing_alternative:block_start|eval_start",
                                          "missing_alternative:block_stop|epoch_stop",
                                          "missing_alternative:block_stop|eval_stop"));
  EXPECT_THAT(Judge(log).findings, SizeIs(4));
}

TEST(CheckTest, BlocksStandForEpochsAndEvaluations) {
  SampleLog log = CosmoflowLog();
  for (const char* key : {"epoch_start", "epoch_stop", "eval_start", "eval_stop"})
    log.Remove(key);
  log.InsertAfter("run_start",
                  {"block_start", "null", "{\"first_epoch_num\": 1, \"epoch_count\": 2}"});
  log.InsertAfter("block_start", {"block_stop", "null", "{\"first_epoch_num\": 1}"});

  EXPECT_THAT(ClassesOf(log), IsEmpty());
  EXPECT_THAT(
      ClassesOf(log.SetMetadata("block_start", "{\"first_epoch_num\": 1, \"epoch_count\": 0}")),
      ElementsAre("check_failed:block_start"));
  EXPECT_THAT(ClassesOf(log.SetMetadata("block_start", "{}")),
              ElementsAre("check_error:block_start"));
}

// ------------------------------------------------------------------------------ order and time

TEST(CheckTest, InitialisationMayTakeJustUnderThirtyMinutes) {
  SampleLog log = CosmoflowLog();
  const int64_t start_ms = log.TimeOf("init_start");

  EXPECT_THAT(ClassesOf(log.SetTime("init_stop", start_ms + 1799999)), IsEmpty());
  EXPECT_THAT(ClassesOf(log.SetTime("init_stop", start_ms + 1800000)),
              ElementsAre("check_failed:init_stop"));
}

TEST(CheckTest, TheEarliestInitStartCounts) {
  SampleLog log = CosmoflowLog();
  log.InsertAfter("init_start", {"init_start", "null", "{}", log.TimeOf("init_stop") - 1800000});

  EXPECT_THAT(ClassesOf(log), ElementsAre("check_failed:init_stop"));
}

TEST(CheckTest, InitMustComeBeforeTheRun) {
  EXPECT_THAT(ClassesOf(CosmoflowLog().Append({"init_start"})),
              ElementsAre("check_failed:init_start"));
  EXPECT_THAT(ClassesOf(CosmoflowLog().Remove("init_start")),
              ElementsAre("check_failed:init_stop", "missing:init_start"));
}

TEST(CheckTest, StagingBeforeRunStartIsFineFromRoundThreeOn) {
  SampleLog log = CosmoflowLog();
  log.InsertAfter("init_stop", {"staging_start"}).InsertAfter("staging_start", {"staging_stop"});

  EXPECT_THAT(ClassesOf(log, "1.0.0"), ElementsAre("check_failed:staging_start"));
  EXPECT_THAT(ClassesOf(log, "2.0.0"), ElementsAre("check_failed:staging_start"));
  EXPECT_THAT(ClassesOf(log, "3.0.0"), IsEmpty());
}

TEST(CheckTest, StagingStopAloneIsAnErrorOfTheExpression) {
  for (const char* round : {"1.0.0", "2.0.0", "3.0.0"}) {
    EXPECT_THAT(ClassesOf(CosmoflowLog().InsertAfter("run_start", {"staging_stop"}), round),
                ElementsAre("check_error:staging_stop"))
        << round;
  }
}

TEST(CheckTest, AnyStatusOfRunStopWillDo) {
  EXPECT_THAT(ClassesOf(CosmoflowLog().SetMetadata("run_stop", "{\"status\": null}")), IsEmpty());
  EXPECT_THAT(ClassesOf(CosmoflowLog().SetMetadata("run_stop", "\"status unknown\"")), IsEmpty());
  EXPECT_THAT(ClassesOf(CosmoflowLog().SetMetadata("run_stop", "[\"status\"]")), IsEmpty());
  EXPECT_THAT(ClassesOf(CosmoflowLog().SetMetadata("run_stop", "{}")),
              ElementsAre("check_failed:run_stop"));
  EXPECT_THAT(ClassesOf(CosmoflowLog().SetMetadata("run_stop", "null")),
              ElementsAre("check_error:run_stop"));
}

// -------------------------------------------------------------------------- queue of configs

TEST(CheckTest, SubmissionKeysAreCheckedOnceAndCountedAlways) {
  // The second division is not judged and enqueues nothing, but it differs.
  EXPECT_THAT(ClassesOf(CosmoflowLog().Append({"submission_division", "\"nonsense\""})),
              ElementsAre("exactly_one_many_different:submission_division"));
  EXPECT_THAT(ClassesOf(CosmoflowLog().Append({"submission_division", "\"closed\""})), IsEmpty());
}

TEST(CheckTest, UnknownNamesEndInACrash) {
  EXPECT_THAT(ClassesOf(CosmoflowLog().Set("submission_division", "[\"closed\"]")),
              ElementsAre("check_failed:submission_division",
                          "config_missing:['closed']_common.yaml", "crash:FileNotFoundError"));
  EXPECT_THAT(ClassesOf(CosmoflowLog().Set("submission_benchmark", "null")),
              ElementsAre("check_failed:submission_benchmark", "config_missing:closed_None.yaml",
                          "crash:FileNotFoundError"));
  EXPECT_THAT(ClassesOf(CosmoflowLog().Set("submission_benchmark", "\"openfold\""), "2.0.0"),
              ElementsAre("check_failed:submission_benchmark",
                          "config_missing:closed_openfold.yaml", "crash:FileNotFoundError"));
}

TEST(CheckTest, OpenAsksForQualityOnly) {
  const SampleLog log = CosmoflowLog()
                            .Set("submission_division", "\"open\"")
                            .Set("opt_name", "\"whatever\"")
                            .Remove("global_batch_size");

  EXPECT_THAT(ClassesOf(log), IsEmpty());
}

TEST(CheckTest, ALaterConfigForgivesAndJudgesAfresh) {
  // closed_common wants a number above 0 if any; closed_deepcam asks for the key again.
  EXPECT_THAT(ClassesOf(DeepcamLog().Remove("gradient_accumulation_frequency")),
              ElementsAre("missing:gradient_accumulation_frequency"));
  // common refuses an empty text; closed_deepcam replaces that message with its own.
  EXPECT_THAT(ClassesOf(DeepcamLog().Set("train_samples", "\"\"")),
              ElementsAre("check_failed:train_samples"));
  EXPECT_THAT(ClassesOf(CosmoflowLog().Remove("gradient_accumulation_frequency")), IsEmpty());
}

TEST(CheckTest, AFailedCheckStillEnqueues) {
  EXPECT_THAT(
      ClassesOf(DeepcamLog().Set("scheduler_type", "\"MULTISTEP\"").Remove("scheduler_decay_rate")),
      ElementsAre("check_failed:scheduler_type", "missing:scheduler_decay_rate"));
}

TEST(CheckTest, SchedulerTypeThatIsNoTextIsAnErrorOfTheEffect) {
  EXPECT_THAT(ClassesOf(DeepcamLog().Set("scheduler_type", "1")),
              ElementsAre("exec_error:scheduler_type"));
  EXPECT_THAT(ClassesOf(DeepcamLog().Set("scheduler_type", "\"poly\"")),
              ElementsAre("check_failed:scheduler_type", "config_missing:closed_deepcam_poly.yaml",
                          "crash:FileNotFoundError"));
}

TEST(CheckTest, LambBringsItsOwnKeys) {
  SampleLog log = DeepcamLog().Set("opt_name", "\"LAMB\"");
  EXPECT_THAT(ClassesOf(log),
              ElementsAre("missing:opt_bias_correction", "missing:opt_grad_averaging",
                          "missing:opt_max_grad_norm"));

  log.Append({"opt_bias_correction", "NaN"})
      .Append({"opt_grad_averaging", "[0]"})
      .Append({"opt_max_grad_norm", "true"});
  EXPECT_THAT(ClassesOf(log), IsEmpty());
  EXPECT_THAT(ClassesOf(log.Set("opt_grad_averaging", "{}")),
              ElementsAre("check_failed:opt_grad_averaging"));
}

// --------------------------------------------------------------------------------- expressions

struct ValueCase {
  const char* key;
  const char* value;
  const char* error;  // "" if fine
};

TEST(CheckTest, ValuesAreComparedAsPythonDoes) {
  const ValueCase cases[] = {
      {"seed", "true", ""},
      {"seed", "0", "check_failed:seed"},
      {"seed", "\"7\"", "check_error:seed"},
      {"seed", "NaN", "check_failed:seed"},
      {"seed", "null", "check_error:seed"},
      {"train_samples", "121266.0", ""},
      {"train_samples", "121266.5", "check_failed:train_samples"},
      {"train_samples", "\"121266\"", "check_failed:train_samples"},
      {"opt_betas", "\"ab\"", ""},
      {"opt_betas", "{\"a\": 1, \"b\": 2}", ""},
      {"opt_betas", "[1]", "check_failed:opt_betas"},
      {"opt_betas", "0.9", "check_error:opt_betas"},
      {"opt_eps", "1.0000000001e-06", ""},
      {"opt_eps", "1.00000001e-06", "check_failed:opt_eps"},
      {"opt_eps", "\"1e-06\"", "check_error:opt_eps"},
      {"opt_eps", "Infinity", "check_failed:opt_eps"},
      {"scheduler_milestones", "\"\"", ""},
      {"scheduler_milestones", "3", "check_error:scheduler_milestones"},
      {"number_of_nodes", "0.5", ""},
      {"accelerators_per_node", "0", ""},
      {"accelerators_per_node", "-1", "check_failed:accelerators_per_node"},
      {"submission_org", "null", ""},
      {"submission_org", "\"\"", "check_failed:submission_org"},
  };
  for (const ValueCase& c : cases) {
    const std::set<std::string> expected =
        *c.error == '\0' ? std::set<std::string>() : std::set<std::string>{c.error};
    EXPECT_EQ(ClassesOf(DeepcamLog().Set(c.key, c.value)), expected) << c.key << " = " << c.value;
  }
}

TEST(CheckTest, DropoutIsBelowOneAndOptional) {
  EXPECT_THAT(ClassesOf(CosmoflowLog().Append({"dropout", "0"})), IsEmpty());
  EXPECT_THAT(ClassesOf(CosmoflowLog().Append({"dropout", "1"})),
              ElementsAre("check_failed:dropout"));
  EXPECT_THAT(ClassesOf(CosmoflowLog().Append({"dropout", "[]"})),
              ElementsAre("check_error:dropout"));
}

// ------------------------------------------------------------------------------------- quality

TEST(CheckTest, OneLineMustMeetTheTarget) {
  EXPECT_THAT(ClassesOf(CosmoflowLog().Set("eval_error", "0.124")), IsEmpty());
  EXPECT_THAT(ClassesOf(CosmoflowLog().Set("eval_error", "0.1241")),
              ElementsAre("no_line_passes:eval_error"));
  EXPECT_THAT(ClassesOf(CosmoflowLog().Set("eval_error", "0")),
              ElementsAre("no_line_passes:eval_error"));
  EXPECT_THAT(ClassesOf(DeepcamLog().Set("eval_accuracy", "1.01")),
              ElementsAre("no_line_passes:eval_accuracy"));
  // After run_stop counts as well.
  EXPECT_THAT(
      ClassesOf(CosmoflowLog().Set("eval_error", "0.2").Append({"eval_error", "0.1", kEpoch})),
      IsEmpty());
}

TEST(CheckTest, WithoutQualityLinesOnlyTheKeyIsMissing) {
  EXPECT_THAT(ClassesOf(CosmoflowLog().Remove("eval_error")), ElementsAre("missing:eval_error"));
}

TEST(CheckTest, AQualityThatIsNoNumberCrashes) {
  const CheckResult result =
      Judge(CosmoflowLog().Append({"eval_error", "\"low\"", kEpoch}).Append({"opt_name", "\"x\""}));

  // The config died on the line, so its later lines and missing keys go unsaid.
  EXPECT_THAT(Classes(result), ElementsAre("crash:TypeError"));
  EXPECT_EQ(result.findings[0].rule_id, "R-QUA-001");
  EXPECT_EQ(result.findings[0].line, 27);
}

// --------------------------------------------------------------------------------------- reading

TEST(CheckTest, ParseErrorsFailTheFileButCheckingGoesOn) {
  const CheckResult result =
      Judge(CosmoflowLog().Set("opt_name", "\"x\"").AppendRaw(":::MLLOG {oops\n"));

  EXPECT_THAT(Classes(result), ElementsAre("check_failed:opt_name", "parse_errors"));
  EXPECT_EQ(result.facts.parse_error_count, 1);
  EXPECT_EQ(result.findings.back().line, 27);
}

TEST(CheckTest, ManyParseErrorsAreCountedNotListed) {
  std::string raw;
  for (int i = 0; i < 1000; ++i)
    raw += ":::MLLOG {oops\n";

  const CheckResult result = Judge(CosmoflowLog().AppendRaw(raw));

  EXPECT_THAT(result.findings, SizeIs(20));
  EXPECT_EQ(result.findings.back().found, "981 more malformed lines");
  EXPECT_EQ(result.facts.parse_error_count, 1000);
}

TEST(CheckTest, ARecordThatKillsTheReferenceIsAllThatIsSaid) {
  const CheckResult result =
      Judge(CosmoflowLog().Set("opt_name", "\"x\"").AppendRaw(":::MLLOG [1]\n"));

  EXPECT_THAT(Classes(result), ElementsAre("crash:TypeError"));
  EXPECT_EQ(result.findings[0].rule_id, "R-LOG-003");
}

TEST(CheckTest, AnEmptyFileMissesEverything) {
  const CheckResult result = Check("", *FindRuleSet("3.0.0"));

  EXPECT_THAT(Classes(result),
              IsSupersetOf({"no_log_lines", "missing:run_start", "missing:submission_division",
                            "missing_alternative:block_start|epoch_start"}));
  EXPECT_THAT(Classes(result), SizeIs(16));
}

TEST(CheckTest, LineNumbersCountEveryKindOfLineEnd) {
  const CheckResult result =
      Check(absl::StrCat("free text\r\nmore\rmore\n", ":::MLLOG {oops\n"), *FindRuleSet("3.0.0"));

  EXPECT_EQ(result.findings.back().line, 4);
}

// ----------------------------------------------------------------------------------------- facts

TEST(FactsTest, TheLastRunStartBeforeTheFirstRunStopCounts) {
  SampleLog log = CosmoflowLog();
  const int64_t second_start_ms = log.TimeOf("run_start") + 500;
  log.InsertAfter("run_start", {"run_start", "null", "{}", second_start_ms});
  const int64_t first_stop_ms = log.TimeOf("run_stop");
  log.Append({"run_stop", "null", "{}"}).Append({"run_start"});

  const Facts facts = Judge(log).facts;

  EXPECT_EQ(facts.run_start_ms, second_start_ms);
  EXPECT_EQ(facts.run_stop_ms, first_stop_ms);
  EXPECT_EQ(facts.run_ms(), first_stop_ms - second_start_ms);
}

TEST(FactsTest, QualityIsTheLastBeforeRunStop) {
  SampleLog log = CosmoflowLog();
  log.InsertAfter("eval_error", {"eval_error", "0.123", kEpoch});
  log.Append({"eval_error", "0.11", kEpoch});

  const Facts facts = Judge(log).facts;

  EXPECT_EQ(facts.quality, 0.123);
  EXPECT_EQ(facts.best_quality, 0.11);
  EXPECT_TRUE(facts.reached_target);
}

TEST(FactsTest, SuccessIsNotTakenAtItsWord) {
  const Facts facts = Judge(CosmoflowLog().Set("eval_error", "0.2")).facts;

  EXPECT_EQ(facts.run_status, "success");
  EXPECT_FALSE(facts.reached_target);
}

// ------------------------------------------------------------------------------------ first touch

TEST(FirstTouchTest, RunStartMustNotComeAfterIt) {
  const FirstTouch touch = {.touch_ms = 1000, .path = "/data/1.tfrecord", .witness = "fanotify"};

  EXPECT_THAT(CheckFirstTouch(999, touch), IsEmpty());
  EXPECT_THAT(CheckFirstTouch(1000, touch), IsEmpty());
  const std::vector<Finding> findings = CheckFirstTouch(1042, touch);

  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].rule_id, "R-TIM-001");
  EXPECT_THAT(findings[0].expected, HasSubstr("1000 ms"));
  EXPECT_THAT(findings[0].expected, HasSubstr("/data/1.tfrecord"));
  EXPECT_EQ(findings[0].found, "run_start at 1042 ms, 42 ms later");
}

TEST(FirstTouchTest, ToleranceAndStrangeStamps) {
  FirstTouch touch = {.touch_ms = 1000, .tolerance_ms = 2};

  EXPECT_THAT(CheckFirstTouch(1002, touch), IsEmpty());
  EXPECT_THAT(CheckFirstTouch(1002.5, touch), SizeIs(1));
  EXPECT_THAT(CheckFirstTouch(std::nan(""), touch), SizeIs(1));
  ASSERT_THAT(CheckFirstTouch(std::nullopt, touch), SizeIs(1));
  EXPECT_EQ(CheckFirstTouch(std::nullopt, touch)[0].rule_id, "R-TIM-002");
}

TEST(FirstTouchTest, WhatNobodyCanBeBlamedForIsAWarning) {
  const FirstTouch touch = {.touch_ms = 1000, .witness = "inotify", .is_attributed = false};

  EXPECT_THAT(CheckFirstTouch(1000, touch), IsEmpty());
  for (const std::optional<double> run_start_ms : {std::optional<double>(5000), {}}) {
    const std::vector<Finding> findings = CheckFirstTouch(run_start_ms, touch);
    ASSERT_THAT(findings, SizeIs(1));
    EXPECT_EQ(findings[0].rule_id, "R-TIM-006");
    EXPECT_EQ(findings[0].severity, Severity::kWarning);
  }
}

}  // namespace
}  // namespace assay::rules
