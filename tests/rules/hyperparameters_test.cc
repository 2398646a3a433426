#include "common/rules/hyperparameters.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/facility_round.h"
#include "common/rules/registry.h"
#include "tests/rules/sample_runs.h"
#include "tests/support/status_matchers.h"

namespace assay::rules {
namespace {

using ::assay::testing::V3;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(HyperparametersTest, ClosedCosmoflowRefusesAdamW) {
  const std::vector<Finding> findings =
      CheckHyperparameters(V3(), "cosmoflow", "closed", {{"opt_name", "adamw"}});

  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].rule_id, "R-HP-004");
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_EQ(findings[0].error_class, "check_failed:opt_name");
  EXPECT_EQ(findings[0].expected, "one of \"sgd\", \"SGD\"");
  EXPECT_EQ(findings[0].found, "\"adamw\"");
  EXPECT_THAT(findings[0].remedy, HasSubstr("open division"));
  EXPECT_EQ(Format("entry.toml", findings[0]),
            "entry.toml: error R-HP-004: opt_name: expected one of \"sgd\", \"SGD\", found "
            "\"adamw\" [HPC rules, Hyperparameters]; fix: set opt_name to sgd, or submit to the "
            "open division");
}

TEST(HyperparametersTest, OpenIsFree) {
  EXPECT_THAT(CheckHyperparameters(V3(), "cosmoflow", "open",
                                   {{"opt_name", "adamw"}, {"dropout", 7}, {"whatever", 1}}),
              IsEmpty());
}

TEST(HyperparametersTest, GoodValuesPass) {
  EXPECT_THAT(CheckHyperparameters(V3(), "cosmoflow", "closed",
                                   {{"opt_name", "sgd"},
                                    {"global_batch_size", 64},
                                    {"dropout", 0.5},
                                    {"sgd_opt_momentum", 0.9},
                                    {"opt_learning_rate_decay_boundary_epochs", JsonList{32, 64}},
                                    {"opt_learning_rate_decay_factor", JsonList{0.25, 0.5}}}),
              IsEmpty());
}

struct BadValue {
  const char* what;
  const char* benchmark;
  Hyperparameters values;
  const char* rule_id;
  Severity severity;
};

TEST(HyperparametersTest, NamesTheViolatedRule) {
  const std::vector<BadValue> cases = {
      {"dropout of one", "cosmoflow", {{"dropout", 1}}, "R-HP-010", Severity::kError},
      {"text as number", "cosmoflow", {{"dropout", "0.5"}}, "R-HP-010", Severity::kError},
      {"other momentum", "cosmoflow", {{"sgd_opt_momentum", 0.8}}, "R-HP-020", Severity::kError},
      {"boundary at zero, which the checker accepts",
       "cosmoflow",
       {{"opt_learning_rate_decay_boundary_epochs", JsonList{0, 2}}},
       "R-HP-021",
       Severity::kWarning},
      {"misspelt", "cosmoflow", {{"opt_nme", "sgd"}}, "R-HP-000", Severity::kWarning},
      {"rule of the scheduler that the values choose",
       "deepcam",
       {{"scheduler_type", "multistep"}, {"scheduler_decay_rate", 2}},
       "R-HP-116",
       Severity::kError},
      {"rule of the optimizer that the values choose",
       "deepcam",
       {{"opt_name", "LAMB"}, {"opt_max_grad_norm", 2}},
       "R-HP-114",
       Severity::kError},
      {"only AdamW", "oc20", {{"opt_name", "SGD"}}, "R-HP-202", Severity::kError},
      {"constant of the reference",
       "openfold",
       {{"max_templates", 8}},
       "R-HP-313",
       Severity::kError},
  };
  for (const BadValue& c : cases) {
    const std::vector<Finding> findings =
        CheckHyperparameters(V3(), c.benchmark, "closed", c.values);

    ASSERT_THAT(findings, SizeIs(1)) << c.what;
    EXPECT_EQ(findings[0].rule_id, c.rule_id) << c.what;
    EXPECT_EQ(findings[0].severity, c.severity) << c.what;
  }
}

TEST(HyperparametersTest, HowTheWorkIsDividedIsNoBusinessOfTheRules) {
  EXPECT_THAT(CheckHyperparameters(V3(), "cosmoflow", "closed",
                                   {{"spatial_grid", JsonList{4, 4}},
                                    {"checkpoint_interval_steps", 100},
                                    {"gradient_bucket_mib", 8},
                                    {"device_cache_mib", 4096},
                                    {"memory_limit_mib", 2000}}),
              IsEmpty());
}

TEST(HyperparametersTest, ClosedRefusesWhatTheReferenceDoesNotDo) {
  const struct {
    const char* benchmark;
    const char* key;
    JsonValue value;
    const char* rule_id;
  } rows[] = {{"cosmoflow", "data_augmentation", "flips", "R-EXT-001"},
              {"cosmoflow", "gradient_skip_layer", "conv3", "R-EXT-002"},
              {"deepcam", "gradient_skip_layer", "block3", "R-EXT-002"},
              {"deepcam", "gradient_skip_after_epochs", 10, "R-EXT-002"},
              {"cosmoflow", "opt_learning_rate_decay_epochs", 170, "R-EXT-003"},
              {"cosmoflow", "opt_learning_rate_decay_end_factor", 0.01, "R-EXT-003"},
              {"cosmoflow", "opt_learning_rate_decay_poly_power", 1, "R-EXT-003"},
              {"deepcam", "scheduler_power", 1, "R-EXT-003"}};
  for (const auto& row : rows) {
    const std::vector<Finding> findings =
        CheckHyperparameters(V3(), row.benchmark, "closed", {{row.key, row.value}});

    ASSERT_THAT(findings, SizeIs(1)) << row.key;
    EXPECT_EQ(findings[0].rule_id, row.rule_id) << row.key;
    EXPECT_EQ(findings[0].severity, Severity::kError) << row.key;
    EXPECT_EQ(findings[0].key, row.key);
    EXPECT_THAT(findings[0].remedy, HasSubstr("or submit to the open division"));
    EXPECT_THAT(CheckHyperparameters(V3(), row.benchmark, "open", {{row.key, row.value}}),
                IsEmpty());
  }
  EXPECT_EQ(CheckHyperparameters(V3(), "deepcam", "closed", {{"scheduler_type", "polynomial"}})[0]
                .rule_id,
            "R-HP-109");
}

TEST(HyperparametersTest, ClosedAllowsAnExtensionThatIsOffAndALargerEvaluationBatch) {
  EXPECT_THAT(CheckHyperparameters(V3(), "cosmoflow", "closed",
                                   {{"data_augmentation", "none"}, {"local_eval_batch_size", 16}}),
              IsEmpty());
}

TEST(HyperparametersTest, ADatasetOfAnotherSizeIsAWarning) {
  const auto round = ParseFacilityRound(R"([round]
name = "sized"
base = "hpc-3.0.0"
label = "Facility round"
[benchmark]
name = "cosmoflow"
runs = 3
target = 0.5
[[rule]]
id = "R-FAC-001"
key = "train_samples"
equals = 512
)",
                                        "sized.toml");
  ASSERT_THAT(round, ::assay::testing::IsOk());

  EXPECT_THAT(CheckSampleCounts(**round, "cosmoflow", "open", 512, 64), IsEmpty());
  const auto findings = CheckSampleCounts(**round, "cosmoflow", "closed", 511, 64);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].rule_id, "R-FAC-001");
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_EQ(findings[0].found, "511 train_samples");
}

// A facility's own round decides for itself.
TEST(HyperparametersTest, ARoundMayAllowAnExtensionInItsClosedDivision) {
  const auto round = ParseFacilityRound(R"([round]
name = "augmented"
base = "hpc-3.0.0"
label = "Facility round"
[benchmark]
name = "cosmoflow"
runs = 3
target = 0.4
[[rule]]
id = "R-FAC-001"
key = "data_augmentation"
occurrence = "optional"
one_of = ["none", "flips"]
hyperparameter = true
)",
                                        "augmented.toml");
  ASSERT_THAT(round, ::assay::testing::IsOk());

  EXPECT_THAT(
      CheckHyperparameters(**round, "cosmoflow", "closed", {{"data_augmentation", "flips"}}),
      IsEmpty());
  EXPECT_THAT(CheckHyperparameters(**round, "cosmoflow", "closed",
                                   {{"data_augmentation", "flips_and_permutations"}}),
              ElementsAre(Field(&Finding::rule_id, "R-FAC-001")));
}

TEST(HyperparametersTest, UnknownBenchmarkAndDivisionAreErrors) {
  EXPECT_THAT(CheckHyperparameters(*FindRuleSet("2.0.0"), "openfold", "closed", {}),
              ElementsAre(Field(&Finding::rule_id, "R-SUB-005")));
  EXPECT_THAT(CheckHyperparameters(V3(), "cosmoflow", "network", {}),
              ElementsAre(Field(&Finding::rule_id, "R-SUB-003")));
}

TEST(HyperparametersTest, EachBenchmarkHasItsRunCount) {
  EXPECT_THAT(CheckRunCount(V3(), "cosmoflow", 10), IsEmpty());
  EXPECT_THAT(CheckRunCount(V3(), "deepcam", 5), IsEmpty());
  EXPECT_THAT(CheckRunCount(V3(), "oc20", 5), IsEmpty());
  EXPECT_THAT(CheckRunCount(V3(), "openfold", 10), IsEmpty());

  const std::vector<Finding> findings = CheckRunCount(V3(), "cosmoflow", 9);

  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].rule_id, "R-RUN-001");
  EXPECT_EQ(findings[0].expected, "10 runs of cosmoflow");
  EXPECT_EQ(findings[0].found, "9");
}

TEST(HyperparametersTest, MoreRunsThanDemandedAreAWarning) {
  const std::vector<Finding> findings = CheckRunCount(V3(), "cosmoflow", 14);

  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].rule_id, "R-RUN-002");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
}

}  // namespace
}  // namespace assay::rules
