#include "common/rules/reference_values.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/registry.h"

namespace assay::rules {
namespace {

using ::testing::HasSubstr;
using Standing = HyperparameterRow::Standing;

std::map<std::string, HyperparameterRow> Rows(const std::string& round, const char* benchmark,
                                              const char* division, const Hyperparameters& values) {
  std::map<std::string, HyperparameterRow> rows;
  for (const HyperparameterRow& row :
       CompareWithReference(*FindRuleSet(round), benchmark, division, values))
    rows[row.key] = row;
  return rows;
}

// The reference is a closed submission: its own rules accept it.
TEST(ReferenceValuesTest, EveryRoundAcceptsItsReference) {
  for (const RuleSet* round : BuiltInRuleSets()) {
    for (const Benchmark& benchmark : round->data().benchmarks) {
      SCOPED_TRACE(absl::StrCat(round->name(), " ", benchmark.name));
      const Hyperparameters reference = ReferenceHyperparameters(*round, benchmark.name);
      EXPECT_FALSE(reference.empty());
      for (const Finding& finding :
           CheckHyperparameters(*round, benchmark.name, "closed", reference))
        EXPECT_EQ(finding.severity, Severity::kWarning) << Format("", finding);
    }
  }
}

TEST(ReferenceValuesTest, LogsSayWhatTheyUsed) {
  const auto line = [](const char* key, const char* value) {
    return absl::StrCat(":::MLLOG {\"namespace\": \"\", \"time_ms\": 1, \"event_type\": \"\", ",
                        "\"key\": \"", key, "\", \"value\": ", value, ", \"metadata\": {}}\n");
  };
  const std::string log = absl::StrCat(
      "free text\n", line("opt_name", "\"LAMB\""), line("opt_lr", "0.004"), line("opt_lr", "0.1"),
      line("scheduler_milestones", "[800]"), line("train_samples", "121266"), ":::MLLOG {\n");

  const Hyperparameters values = LoggedHyperparameters(log, *FindRuleSet("v3.0"), "deepcam");

  EXPECT_EQ(values.size(), 3U) << "samples are no hyperparameter";
  EXPECT_EQ(values.at("opt_lr").ToDouble(), 0.004);
  EXPECT_EQ(values.at("scheduler_milestones").AsList()->size(), 1U);
}

TEST(CompareWithReferenceTest, TellsTunedFromRefused) {
  auto rows = Rows("v3.0", "cosmoflow", "closed",
                   {{"global_batch_size", 512},
                    {"opt_name", "adamw"},
                    {"opt_base_learning_rate", 0.001},
                    {"opt_learning_rate_warmup_epohcs", 4}});

  EXPECT_EQ(rows["global_batch_size"].standing, Standing::kTuned);
  EXPECT_EQ(rows["opt_name"].standing, Standing::kRefused);
  EXPECT_THAT(rows["opt_name"].allowed, HasSubstr("\"sgd\""));
  EXPECT_EQ(rows["opt_name"].rule_id, "R-HP-004");
  EXPECT_EQ(rows["opt_base_learning_rate"].standing, Standing::kSame);
  EXPECT_EQ(rows["opt_learning_rate_warmup_epohcs"].standing, Standing::kUnknown);
  EXPECT_EQ(rows["dropout"].standing, Standing::kNotGiven);
}

TEST(CompareWithReferenceTest, OpenAllowsWhatClosedRefuses) {
  auto rows = Rows("v3.0", "cosmoflow", "open", {{"opt_name", "adamw"}});

  EXPECT_EQ(rows["opt_name"].standing, Standing::kTuned);
  EXPECT_EQ(rows["opt_name"].allowed, "");
}

TEST(CompareWithReferenceTest, RulesFollowTheChoices) {
  const auto cosine = Rows("v3.0", "deepcam", "closed", {});
  EXPECT_EQ(cosine.count("scheduler_t_max"), 1U);
  EXPECT_EQ(cosine.count("scheduler_milestones"), 0U);

  const auto multistep = Rows("v3.0", "deepcam", "closed", {{"scheduler_type", "multistep"}});
  EXPECT_EQ(multistep.count("scheduler_milestones"), 1U);
  EXPECT_EQ(multistep.at("scheduler_milestones").rule_id, "R-HP-115");
}

TEST(CompareWithReferenceTest, FixedValuesComeFromTheRules) {
  const auto rows = Rows("v3.0", "openfold", "closed", {});

  EXPECT_EQ(rows.at("swa_decay_rate").reference->ToDouble(), 0.9);
  EXPECT_EQ(rows.at("opt_gradient_clip_norm").reference->ToDouble(), 0.1);
}

}  // namespace
}  // namespace assay::rules
