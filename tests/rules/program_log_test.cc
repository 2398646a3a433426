#include "common/rules/program_log.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::rules {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Record(const std::string& key, const std::string& value, int64_t time_ms = 5000) {
  return absl::StrCat(R"(:::MLLOG {"namespace": "", "time_ms": )", time_ms,
                      R"(, "event_type": "POINT_IN_TIME", "key": ")", key, R"(", "value": )", value,
                      R"(, "metadata": {}})", "\n");
}

LoggedFacts Given() {
  LoggedFacts facts{.organization = "Example University",
                    .system = "cluster-a",
                    .benchmark = "cosmoflow",
                    .division = "open",
                    .status = "onprem",
                    .seed = 4711,
                    .node_count = 2,
                    .train_samples = 256,
                    .eval_samples = 64};
  facts.hyperparameters = {{"global_batch_size", JsonValue(16)},
                           {"opt_base_learning_rate", JsonValue(0.05)}};
  return facts;
}

std::string Honest() {
  return absl::StrCat(
      Record("init_start", "null", 1000), Record("submission_org", R"("Example University")"),
      Record("submission_platform", R"("cluster-a")"),
      Record("submission_benchmark", R"("cosmoflow")"), Record("submission_division", R"("open")"),
      Record("submission_status", R"("onprem")"), Record("seed", "4711"),
      Record("number_of_nodes", "2"), Record("train_samples", "256"), Record("eval_samples", "64"),
      Record("global_batch_size", "16"), Record("opt_base_learning_rate", "0.05"),
      Record("run_start", "null", 2000), Record("run_stop", "null", 3000));
}

std::vector<Finding> FindingsOf(const std::string& log) {
  ProgramLogCheck check(Given());
  for (const char c : log)  // in pieces of any size
    check.Add(absl::string_view(&c, 1));
  return check.Finish();
}

TEST(ProgramLogTest, AnHonestLogHasNoFinding) {
  EXPECT_THAT(FindingsOf(Honest()), IsEmpty());
}

TEST(ProgramLogTest, EachFactThatIsFalsifiedOrMissingHasItsFinding) {
  struct Case {
    const char* key;
    const char* rule;
    const char* honest;
    const char* falsified;
  };
  for (const Case& c :
       {Case{"submission_org", "R-WRK-021", "\"Example University\"", "\"Another\""},
        Case{"submission_platform", "R-WRK-021", "\"cluster-a\"", "\"cluster-b\""},
        Case{"submission_benchmark", "R-WRK-021", "\"cosmoflow\"", "\"deepcam\""},
        Case{"submission_division", "R-WRK-021", "\"open\"", "\"closed\""},
        Case{"submission_status", "R-WRK-021", "\"onprem\"", "\"cloud\""},
        Case{"seed", "R-WRK-022", "4711", "4712"}, Case{"number_of_nodes", "R-WRK-023", "2", "1"},
        Case{"train_samples", "R-WRK-024", "256", "255"},
        Case{"eval_samples", "R-WRK-024", "64", "\"64\""},
        Case{"global_batch_size", "R-WRK-025", "16", "32"},
        Case{"opt_base_learning_rate", "R-WRK-025", "0.05", "0.1"}}) {
    const std::string line = Record(c.key, c.honest);
    const std::string log = Honest();
    ASSERT_THAT(log, HasSubstr(line));

    const std::vector<Finding> other =
        FindingsOf(absl::StrReplaceAll(log, {{line, Record(c.key, c.falsified)}}));
    ASSERT_EQ(other.size(), 1u) << c.key;
    EXPECT_EQ(other[0].rule_id, c.rule) << c.key;
    EXPECT_EQ(other[0].severity, Severity::kError) << c.key;
    EXPECT_EQ(other[0].expected, c.honest);
    EXPECT_EQ(other[0].found, c.falsified);
    EXPECT_GT(other[0].line, 0) << c.key;

    // One that is right does not undo another that is not.
    EXPECT_EQ(FindingsOf(log + Record(c.key, c.falsified)).size(), 1u) << c.key;

    const std::vector<Finding> missing = FindingsOf(absl::StrReplaceAll(log, {{line, ""}}));
    ASSERT_EQ(missing.size(), 1u) << c.key;
    EXPECT_EQ(missing[0].rule_id, c.rule) << c.key;
    EXPECT_EQ(missing[0].found, "not logged") << c.key;
  }
}

TEST(ProgramLogTest, AHyperparameterThatTheSubmissionDoesNotHaveIsAWarning) {
  const std::vector<Finding> findings = FindingsOf(Honest() + Record("opt_weight_decay", "0.1"));

  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule_id, "R-WRK-026");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
}

}  // namespace
}  // namespace assay::rules
