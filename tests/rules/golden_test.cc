// How findings are worded, against tests/golden/rules. Rewrite with ASSAY_UPDATE_GOLDEN=1
// build/dev/tests/rules_test and review the difference.

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "common/rules/check.h"
#include "common/rules/hyperparameters.h"
#include "common/rules/registry.h"
#include "tests/rules/sample_log.h"

namespace assay::rules {
namespace {

using ::assay::testing::CosmoflowLog;
using ::assay::testing::DeepcamLog;
using ::assay::testing::SampleLog;

struct Case {
  const char* what;
  std::string log;
  const char* round = "3.0.0";
};

std::vector<Case> CasesOfKeys() {
  return {
      {"one of a list", CosmoflowLog().Set("opt_name", "\"adamw\"").Text()},
      {"a bound", CosmoflowLog().Set("global_batch_size", "0").Text()},
      {"a wrong type", CosmoflowLog().Set("global_batch_size", "\"64\"").Text()},
      {"a text that must not be empty", CosmoflowLog().Set("submission_org", "\"\"").Text()},
      {"a key that is missing", CosmoflowLog().Remove("train_samples").Text()},
      {"a key with two values", CosmoflowLog().Append({"global_batch_size", "65"}).Text()},
      {"a key twice with one value", CosmoflowLog().Append({"opt_name", "\"sgd\""}).Text()},
      {"metadata without its member", CosmoflowLog().SetMetadata("run_stop", "{}").Text()},
      {"metadata of a wrong type", CosmoflowLog().SetMetadata("epoch_start", "null").Text()},
      {"a target never met", CosmoflowLog().Set("eval_error", "0.125").Text()},
      {"a quality that is no number", CosmoflowLog().Set("eval_error", "\"low\"").Text()},
      {"nothing of an alternative", CosmoflowLog().Remove("eval_stop").Text()},
      {"a wrong order", CosmoflowLog().InsertAfter("run_start", {"init_start"}).Text()},
      {"staging before the run", CosmoflowLog().InsertAfter("init_stop", {"staging_start"}).Text(),
       "1.0.0"},
      {"staging that only stops", CosmoflowLog().Append({"staging_stop"}).Text()},
      {"an initialisation that is too long",
       CosmoflowLog().SetTime("init_stop", CosmoflowLog().TimeOf("init_start") + 1'800'000).Text()},
      {"a fixed value", DeepcamLog().Set("train_samples", "121216").Text()},
      {"a length", DeepcamLog().Set("opt_betas", "[0.9]").Text()},
      {"a close value", DeepcamLog().Set("opt_eps", "1e-8").Text()},
      {"no length at all", DeepcamLog().Set("scheduler_milestones", "7").Text()},
      {"keys that another asks for", DeepcamLog().Set("opt_name", "\"LAMB\"").Text()},
      {"an option that is no text", DeepcamLog().Set("scheduler_type", "7").Text()},
      {"an option that no round has", DeepcamLog().Set("scheduler_type", "\"poly\\u001b\"").Text()},
      {"a benchmark that the round lacks",
       CosmoflowLog().Set("submission_benchmark", "\"openfold\"").Text(), "2.0.0"},
      {"a block without epochs",
       CosmoflowLog().Append({"block_start", "null", R"({"epoch_count": 0})"}).Text()}};
}

std::vector<Case> CasesOfLines() {
  return {{"a damaged record", CosmoflowLog().AppendRaw(":::MLLOG {\"key\": \n").Text()},
          {"a record without value",
           CosmoflowLog().AppendRaw(":::MLLOG {\"time_ms\": 1, \"key\": \"x\"}\n").Text()},
          {"a record that nests too deep",
           CosmoflowLog().AppendRaw(":::MLLOG " + std::string(100000, '[') + "\n").Text()},
          {"an integer with too many digits",
           CosmoflowLog().Append({"seed", std::string(5000, '9')}).Text()},
          {"a zero byte in a record",
           CosmoflowLog().AppendRaw(std::string(":::MLLOG {\"key\": \"\0\"}\n", 21)).Text()},
          {"a record of 17 MiB",
           CosmoflowLog().AppendRaw(":::MLLOG " + std::string(17 << 20, ' ') + "\n").Text()},
          {"a file without records", "nothing\n"}};
}

std::string Findings(const std::vector<Case>& cases) {
  std::string text;
  for (const Case& one : cases) {
    absl::StrAppend(&text, "# ", one.what, "\n");
    for (const Finding& finding : Check(one.log, *FindRuleSet(one.round)).findings)
      absl::StrAppend(&text, Format("result_0.txt", finding), "\n");
    absl::StrAppend(&text, "\n");
  }
  return text;
}

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat("tests/golden/rules/", name, ".txt");
  if (std::getenv("ASSAY_UPDATE_GOLDEN") != nullptr) {
    CHECK_OK(MakeDirectories("tests/golden/rules"));
    CHECK_OK(WriteFileAtomic(path, text));
  }
  EXPECT_EQ(ReadFile(path).value_or("(no golden file)"), text) << path;
}

TEST(FindingsTest, AboutKeysAreWordedAsAgreed) {
  ExpectGolden("keys", Findings(CasesOfKeys()));
}

TEST(FindingsTest, AboutLinesAreWordedAsAgreed) {
  ExpectGolden("lines", Findings(CasesOfLines()));
}

TEST(FindingsTest, BeforeARunAreWordedAsAgreed) {
  std::string text;
  const std::vector<Finding> findings = CheckHyperparameters(
      *FindRuleSet("3.0.0"), "cosmoflow", "closed",
      {{"opt_name", "adamw"}, {"global_batch_size", 0}, {"sgd_opt_momentum", 0.8}, {"typo", 1}});
  for (const Finding& finding : findings)
    absl::StrAppend(&text, Format("closed.toml", finding), "\n");
  for (const Finding& finding : CheckRunCount(*FindRuleSet("3.0.0"), "cosmoflow", 3))
    absl::StrAppend(&text, Format("closed.toml", finding), "\n");
  for (const Finding& finding :
       CheckFirstTouch(5000.0, {.touch_ms = 1000, .path = "train/a", .witness = "inotify on n-07"}))
    absl::StrAppend(&text, Format("result_0.txt", finding), "\n");
  ExpectGolden("submission", text);
}

// No byte of a log may reach a terminal as it is.
TEST(FindingsTest, HoldNoControlCharacters) {
  for (const Case& one : CasesOfKeys()) {
    for (const Finding& finding : Check(one.log, *FindRuleSet(one.round)).findings) {
      for (const char c : Format("result_0.txt", finding))
        EXPECT_GE(static_cast<unsigned char>(c), 0x20) << one.what;
    }
  }
}

}  // namespace
}  // namespace assay::rules
