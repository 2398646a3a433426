#include "common/rules/facility_round.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/rules/check.h"
#include "common/rules/hyperparameters.h"
#include "common/rules/pack.h"
#include "common/rules/registry.h"
#include "tests/support/status_matchers.h"

namespace assay::rules {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kMini[] = R"([round]
name = "mini"
base = "hpc-3.0.0"
label = "not an MLPerf result"
init_limit_s = 60
[benchmark]
name = "cosmoflow"
runs = 3
target = 0.5
[[rule]]
id = "R-FAC-001"
key = "train_samples"
equals = 512
[[rule]]
id = "R-FAC-002"
key = "opt_name"
one_of = ["sgd", "adam"]
hyperparameter = true
divisions = ["closed"]
)";

std::unique_ptr<const RuleSet> Mini() {
  absl::StatusOr<std::unique_ptr<const RuleSet>> rules = ParseFacilityRound(kMini, "mini.toml");
  EXPECT_THAT(rules, IsOk());
  return *std::move(rules);
}

TEST(FacilityRoundTest, TakesNameTargetAndRunsFromTheFile) {
  const auto rules = Mini();

  EXPECT_EQ(rules->name(), "mini");
  EXPECT_FALSE(rules->data().is_mlperf);
  EXPECT_EQ(rules->data().label, "not an MLPerf result");
  EXPECT_EQ(rules->data().init_limit_ms, 60000);
  ASSERT_THAT(rules->data().benchmarks, SizeIs(1));
  EXPECT_EQ(rules->FindBenchmark("cosmoflow")->target, 0.5);
  EXPECT_THAT(CheckRunCount(*rules, "cosmoflow", 3), IsEmpty());
  EXPECT_THAT(CheckRunCount(*rules, "deepcam", 5), SizeIs(1));
  EXPECT_NE(rules->digest(), FindRuleSet("3.0.0")->digest());
}

TEST(FacilityRoundTest, MayDemandAFirstPassFromStorage) {
  const auto with = [](const std::string& line) {
    std::string text = kMini;
    text.insert(text.find("[benchmark]"), line);
    return ParseFacilityRound(text, "mini.toml");
  };
  EXPECT_FALSE(Mini()->data().first_pass_from_storage);
  EXPECT_EQ((*with("first_pass_from_storage = false\n"))->digest(), Mini()->digest());
  const auto demanding = with("first_pass_from_storage = true\n");
  ASSERT_THAT(demanding, IsOk());
  EXPECT_TRUE((*demanding)->data().first_pass_from_storage);
  EXPECT_NE((*demanding)->digest(), Mini()->digest());
  const absl::StatusOr<Pack> pack = ReadPack(WritePack((*demanding)->data(), ""), "pack");
  ASSERT_THAT(pack, IsOk());
  EXPECT_TRUE(pack->data.first_pass_from_storage);
  EXPECT_EQ(pack->digest, (*demanding)->digest());
  EXPECT_THAT(with("first_pass_from_storage = \"yes\"\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("true or false")));
}

TEST(FacilityRoundTest, MayDemandColdData) {
  std::string text = kMini;
  text.insert(text.find("[benchmark]"), "data_cold_at_start = true\n");
  const auto demanding = ParseFacilityRound(text, "mini.toml");
  ASSERT_THAT(demanding, IsOk());
  EXPECT_TRUE((*demanding)->data().data_cold_at_start);
  EXPECT_FALSE(Mini()->data().data_cold_at_start);
  EXPECT_NE((*demanding)->digest(), Mini()->digest());
  const absl::StatusOr<Pack> pack = ReadPack(WritePack((*demanding)->data(), ""), "pack");
  ASSERT_THAT(pack, IsOk());
  EXPECT_TRUE(pack->data.data_cold_at_start);
  EXPECT_EQ(pack->digest, (*demanding)->digest());
}

TEST(FacilityRoundTest, MayDemandHowWellTheFirstTouchIsSeen) {
  const auto with = [](const std::string& line) {
    std::string text = kMini;
    text.insert(text.find("[benchmark]"), line);
    return ParseFacilityRound(text, "mini.toml");
  };
  EXPECT_EQ(Mini()->data().first_touch_assurance, Assurance::kSelfReported);
  EXPECT_EQ((*with("first_touch_assurance = \"self-reported\"\n"))->digest(), Mini()->digest())
      << "which demands nothing";
  const auto demanding = with("first_touch_assurance = \"proven\"\n");
  ASSERT_THAT(demanding, IsOk());
  EXPECT_NE((*demanding)->digest(), Mini()->digest());
  const absl::StatusOr<Pack> pack = ReadPack(WritePack((*demanding)->data(), ""), "pack");
  ASSERT_THAT(pack, IsOk());
  EXPECT_EQ(pack->data.first_touch_assurance, Assurance::kProven);
  EXPECT_EQ(pack->digest, (*demanding)->digest());
  EXPECT_THAT(with("first_touch_assurance = \"certain\"\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("observed or proven")));
}

TEST(FacilityRoundTest, ItsRulesReplaceTheBaseRounds) {
  const auto rules = Mini();

  EXPECT_THAT(CheckHyperparameters(*rules, "cosmoflow", "closed", {{"opt_name", "adam"}}),
              IsEmpty());
  const auto findings =
      CheckHyperparameters(*rules, "cosmoflow", "closed", {{"opt_name", "adamw"}});
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].rule_id, "R-FAC-002");
}

TEST(FacilityRoundTest, JudgesLogsByItsOwnTargetAndData) {
  const auto rules = Mini();
  const auto line = [](absl::string_view key, absl::string_view value) {
    return absl::StrCat(":::MLLOG {\"time_ms\": 1, \"key\": \"", key, "\", \"value\": ", value,
                        ", \"metadata\": {\"epoch_num\": 1}}\n");
  };
  const auto classes = [&](absl::string_view samples, absl::string_view error) {
    const CheckResult result =
        Check(absl::StrCat(line("submission_division", "\"open\""),
                           line("submission_benchmark", "\"cosmoflow\""),
                           line("train_samples", samples), line("eval_error", error)),
              *rules);
    std::string found;
    for (const Finding& finding : result.findings)
      absl::StrAppend(&found, finding.error_class, " ");
    return found;
  };

  EXPECT_THAT(classes("512", "0.5"), Not(HasSubstr("train_samples")));
  EXPECT_THAT(classes("512", "0.5"), Not(HasSubstr("eval_error")));
  EXPECT_THAT(classes("511", "0.51"), HasSubstr("check_failed:train_samples"));
  EXPECT_THAT(classes("511", "0.51"), HasSubstr("no_line_passes:eval_error"));
}

struct Mistake {
  const char* from;
  const char* to;
  const char* message;
};

TEST(FacilityRoundTest, SaysWhereAFileIsWrong) {
  const Mistake mistakes[] = {
      {"name = \"mini\"", "name = \"hpc-4\"", "mini.toml:2:8: \"name\""},
      {"base = \"hpc-3.0.0\"", "base = \"hpc-9\"", "mini.toml:3:8: unknown base round"},
      {"runs = 3", "runs = 0", "mini.toml:8:8: \"runs\" must be from 1"},
      {"runs = 3", "runs = \"3\"", "mini.toml:8:8: \"runs\" must be an integer"},
      {"target = 0.5", "target = nan", "mini.toml:9:10: \"target\""},
      {"target = 0.5", "", "mini.toml:6:1: \"target\" is required"},
      {"target = 0.5", "goal = 0.5", "mini.toml:9:1: unknown key \"goal\""},
      {"name = \"cosmoflow\"", "name = \"resnet\"", "mini.toml:7:8: the base round has no"},
      {"id = \"R-FAC-002\"", "id = \"R-FAC-001\"", "is used twice"},
      {"id = \"R-FAC-002\"", "id = \"R-HP-004\"", "mini.toml:15:6: \"id\" must be R-FAC-"},
      {"equals = 512", "at_least = \"x\"", "mini.toml:13:12: \"at_least\" must be a number"},
      {"divisions = [\"closed\"]", "divisions = []", "\"divisions\" must list"},
      {"one_of = [\"sgd\", \"adam\"]", "one_of = []", "\"one_of\" must be a list"},
      {"[benchmark]", "[benchmark", "mini.toml:6:"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string toml = absl::StrReplaceAll(kMini, {{mistake.from, mistake.to}});

    EXPECT_THAT(ParseFacilityRound(toml, "mini.toml"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(mistake.message)))
        << mistake.to;
  }
}

// A benchmark that no round of MLPerf has.
constexpr char kDeclaring[] = R"([round]
name = "own"
base = "hpc-3.0.0"
label = "not an MLPerf result"
[benchmark]
name = "words"
runs = 2
target = 2.5
quality_key = "eval_perplexity"
better = "lower"
[[rule]]
id = "R-FAC-001"
key = "layer_count"
equals = 2
hyperparameter = true
divisions = ["closed"]
)";

Facts FactsOf(absl::string_view toml, absl::string_view key, absl::string_view quality,
              std::string* classes) {
  const auto rules = ParseFacilityRound(toml, "own.toml");
  EXPECT_THAT(rules, IsOk());
  const auto line = [](absl::string_view name, absl::string_view value) {
    return absl::StrCat(":::MLLOG {\"time_ms\": 1, \"key\": \"", name, "\", \"value\": ", value,
                        ", \"metadata\": {\"epoch_num\": 1}}\n");
  };
  const CheckResult result = Check(absl::StrCat(line("submission_division", "\"closed\""),
                                                line("submission_benchmark", "\"words\""),
                                                line("layer_count", "2"), line(key, quality)),
                                   **rules);
  for (const Finding& finding : result.findings)
    absl::StrAppend(classes, finding.error_class, " ");
  return result.facts;
}

TEST(FacilityRoundTest, DeclaresABenchmarkOfItsOwn) {
  std::string good, bad;
  const Facts reached = FactsOf(kDeclaring, "eval_perplexity", "2.5", &good);
  const Facts missed = FactsOf(kDeclaring, "eval_perplexity", "2.51", &bad);

  EXPECT_TRUE(reached.reached_target);
  EXPECT_EQ(reached.best_quality, 2.5);
  EXPECT_FALSE(missed.reached_target);
  EXPECT_THAT(good, AllOf(Not(HasSubstr("eval_perplexity")), Not(HasSubstr("layer_count")),
                          Not(HasSubstr("submission_benchmark"))));
  EXPECT_THAT(bad, HasSubstr("no_line_passes:eval_perplexity"));
  const auto rules = ParseFacilityRound(kDeclaring, "own.toml");
  EXPECT_THAT(CheckRunCount(**rules, "words", 2), IsEmpty());
  EXPECT_THAT(CheckHyperparameters(**rules, "words", "open", {{"layer_count", 3}}), IsEmpty());
  EXPECT_THAT(CheckHyperparameters(**rules, "words", "closed", {{"layer_count", 3}}), SizeIs(1));
}

// A share is at most 1; what is counted otherwise, as a score in points, may be more.
TEST(FacilityRoundTest, HigherMayBeBetter) {
  const std::string share = absl::StrReplaceAll(
      kDeclaring, {{"\"lower\"", "\"higher\""}, {"target = 2.5", "target = 0.8"}});
  const std::string points = absl::StrReplaceAll(kDeclaring, {{"\"lower\"", "\"higher\""}});
  std::string classes;

  EXPECT_TRUE(FactsOf(share, "eval_perplexity", "0.81", &classes).reached_target);
  EXPECT_TRUE(FactsOf(points, "eval_perplexity", "30", &classes).reached_target);
  EXPECT_THAT(classes, Not(HasSubstr("eval_perplexity")));
  EXPECT_FALSE(FactsOf(share, "eval_perplexity", "1.1", &classes).reached_target);
  EXPECT_THAT(classes, HasSubstr("no_line_passes:eval_perplexity"));
}

TEST(FacilityRoundTest, SaysWhereADeclarationIsWrong) {
  const Mistake mistakes[] = {
      {"better = \"lower\"", "better = \"less\"", "own.toml:10:10: \"better\" must be lower or"},
      {"better = \"lower\"", "", "own.toml:5:1: \"better\" is required"},
      {"quality_key = \"eval_perplexity\"", "", "own.toml:5:1: \"quality_key\" is required"},
      {"\"eval_perplexity\"", "\"eval samples\"", "own.toml:9:15: \"quality_key\" must be"},
      {"\"eval_perplexity\"", "\"train_samples\"", "own.toml:9:15: \"quality_key\" must be"},
      {"\"words\"", "\"Words\"", "own.toml:6:8: \"name\" must be lower-case"},
      {"\"words\"", "\"cosmoflow\"", "\"quality_key\" of cosmoflow is the base round's"},
      {"hpc-3.0.0\"\nlabel = \"not an MLPerf result\"\n[benchmark]\nname = \"words\"",
       "hpc-1.0.0\"\nlabel = \"x\"\n[benchmark]\nname = \"openfold\"",
       "own.toml:6:8: the base round has no benchmark \"openfold\", and it is a name of MLPerf's"},
      {"key = \"layer_count\"", "key = \"eval_perplexity\"", "set the quality with [benchmark]"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string toml = absl::StrReplaceAll(kDeclaring, {{mistake.from, mistake.to}});

    EXPECT_THAT(ParseFacilityRound(toml, "own.toml"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(mistake.message)))
        << mistake.to;
  }
}

TEST(FacilityRoundTest, RoundsThatComeWithAssayAreValid) {
  for (const char* name : {"words-mini", "shapes-mini", "deepcam-mini"}) {
    const auto toml = ReadFile(absl::StrCat("deploy/rounds/", name, ".toml"));
    ASSERT_THAT(toml, IsOk());
    const auto rules = ParseFacilityRound(*toml, name);
    ASSERT_THAT(rules, IsOk());
    EXPECT_EQ((*rules)->name(), name);
    EXPECT_THAT((*rules)->data().label, HasSubstr("not an MLPerf result"));
  }
}

TEST(FacilityRoundTest, TheExampleIsValid) {
  const absl::StatusOr<std::string> toml = ReadFile("deploy/rounds/cosmoflow-mini.toml");
  ASSERT_THAT(toml, IsOk());

  const auto rules = ParseFacilityRound(*toml, "cosmoflow-mini.toml");

  ASSERT_THAT(rules, IsOk());
  EXPECT_FALSE((*rules)->data().is_mlperf);
  EXPECT_THAT((*rules)->data().label, HasSubstr("not an MLPerf result"));
  EXPECT_EQ((*rules)->FindBenchmark("cosmoflow")->runs_required, 3);
  EXPECT_THAT(CheckHyperparameters(**rules, "cosmoflow", "closed", {{"cube_edge", 64}}), SizeIs(1));
}

}  // namespace
}  // namespace assay::rules
