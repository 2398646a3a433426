// assay rules: judging files, freezing rounds, comparing them.

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/file.h"
#include "common/rules/registry.h"
#include "common/sha256.h"
#include "tests/cli/invocation.h"
#include "tests/rules/sample_log.h"

namespace assay {
namespace {

using cli::ExitStatus;
using Json = nlohmann::json;
using ::testing::AllOf;
using testing::CosmoflowLog;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// RFC 8410 around two keys of RFC 8032, section 7.1, and the public half of the first.
std::string PrivateKey(const char* secret) {
  const std::string der =
      absl::HexStringToBytes(absl::StrCat("302e020100300506032b657004220420", secret));
  return absl::StrCat("-----BEGIN PRIVATE KEY-----\n", absl::Base64Escape(der),
                      "\n-----END PRIVATE KEY-----\n");
}
std::string PublicKey(const char* key) {
  const std::string der = absl::HexStringToBytes(absl::StrCat("302a300506032b6570032100", key));
  return absl::StrCat("-----BEGIN PUBLIC KEY-----\n", absl::Base64Escape(der),
                      "\n-----END PUBLIC KEY-----\n");
}

class RulesCommandTest : public ::testing::Test {
 protected:
  // What `rules check --json` printed: one object per line.
  std::vector<Json> Items() const {
    std::vector<Json> items;
    for (const absl::string_view line : absl::StrSplit(run_.out, '\n', absl::SkipEmpty()))
      items.push_back(Json::parse(line.begin(), line.end()));
    return items;
  }
  std::vector<std::string> Paths() const {
    std::vector<std::string> paths;
    for (const Json& item : Items())
      paths.push_back(item["path"]);
    return paths;
  }
  void WriteKeys() {
    run_.Write("key.pem",
               PrivateKey("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
    run_.Write("public.pem",
               PublicKey("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"));
    run_.Write("other.pem",
               PublicKey("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"));
  }

  testing::Invocation run_;
};

TEST_F(RulesCommandTest, CheckPrintsOneObjectPerLog) {
  const std::string good = CosmoflowLog().Text();
  const std::string bad = CosmoflowLog().Set("opt_name", "7").Append({"run_start"}).Text();
  run_.Write("logs/result_0.txt", good);
  run_.Write("logs/result_1.txt", bad);

  EXPECT_EQ(run_.Run("rules check --ruleset 3.0.0 --json logs"), ExitStatus::kRuleViolation);

  const std::vector<Json> items = Items();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0]["path"], "logs/result_0.txt");
  EXPECT_EQ(items[0]["sha256"], Sha256Hex(good));
  EXPECT_EQ(items[0]["verdict"], "pass");
  EXPECT_THAT(items[0]["errors"], IsEmpty());
  EXPECT_EQ(items[0]["round"], "hpc-3.0.0");
  EXPECT_EQ(items[0]["rules_digest"], rules::FindRuleSet("3.0.0")->digest());
  EXPECT_EQ(items[1]["verdict"], "fail");
  EXPECT_EQ(items[1]["errors"], Json({"check_failed:opt_name"}));
  EXPECT_EQ(items[1]["warnings"], Json({"run_start"}));
  const Json& finding = items[1]["findings"][0];
  EXPECT_EQ(finding["rule"], "R-HP-004");
  EXPECT_EQ(finding["line"], 13);
  EXPECT_EQ(finding["key"], "opt_name");
  EXPECT_EQ(finding["found"], "7");
  for (const char* text : {"expected", "section", "remedy"})
    EXPECT_NE(finding[text], "") << text;

  EXPECT_EQ(run_.Run("rules check --ruleset 3.0.0 logs/result_0.txt"), ExitStatus::kDone);
  EXPECT_EQ(run_.Run("rules check --ruleset 3.0.0 --strict logs/result_0.txt"), ExitStatus::kDone);
  EXPECT_EQ(run_.Run("rules check --ruleset 3.0.0 --json=path,verdict logs/result_0.txt"),
            ExitStatus::kDone);
  EXPECT_EQ(run_.out, R"({"schema":"assay.check/v1","path":"logs/result_0.txt","verdict":"pass"})"
                      "\n");
}

TEST_F(RulesCommandTest, CheckTakesFilesAndFoldersInTheOrderOfTheirPaths) {
  const std::string log = CosmoflowLog().Text();
  for (const char* name : {"b/strong/oc20/result_10.txt", "b/strong/oc20/result_2.txt",
                           "b/weak/pruned_results/result_1.txt", "b/readme.txt", "a.log"})
    run_.Write(name, log);

  EXPECT_EQ(run_.Run("rules check --ruleset 1.0.0 --json b a.log b/strong"), ExitStatus::kDone);
  EXPECT_THAT(Paths(),
              ElementsAre("a.log", "b/strong/oc20/result_10.txt", "b/strong/oc20/result_2.txt",
                          "b/weak/pruned_results/result_1.txt"));

  run_.Write("empty/notes.txt", "");
  EXPECT_EQ(run_.Run("rules check --ruleset 1.0.0 empty"), ExitStatus::kNotFound);
}

TEST_F(RulesCommandTest, CheckSaysWhatItCannotRead) {
  run_.Write("result_0.txt", CosmoflowLog().Text());

  EXPECT_EQ(run_.Run("rules check --ruleset 3.0.0 --json gone.txt result_0.txt"),
            ExitStatus::kFailed);

  const std::vector<Json> items = Items();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0]["verdict"], "fail");
  EXPECT_EQ(items[0]["errors"], Json({"unreadable"}));
  EXPECT_TRUE(items[0]["sha256"].is_null());
  EXPECT_EQ(items[0]["findings"][0]["rule"], "R-LOG-005");
  EXPECT_EQ(items[1]["verdict"], "pass");
}

TEST_F(RulesCommandTest, CheckWritesAsCompilersDo) {
  run_.Write("result_0.txt", CosmoflowLog().Set("opt_name", "\"adamw\"").Text());

  EXPECT_EQ(run_.Run("rules check --round v3.0 result_0.txt -o plain"), ExitStatus::kRuleViolation);

  EXPECT_THAT(run_.out, StartsWith("result_0.txt:13: error R-HP-004: opt_name: expected one of "
                                   "\"sgd\", \"SGD\", found \"adamw\""));
  EXPECT_THAT(run_.out, HasSubstr("fix: set opt_name to sgd"));
  EXPECT_THAT(run_.out, HasSubstr(absl::StrCat("0 of 1 pass hpc-3.0.0 (rules sha256:",
                                               rules::FindRuleSet("3.0.0")->digest())));
}

TEST_F(RulesCommandTest, CheckWantsItsRulesNamedOnce) {
  run_.Write("result_0.txt", CosmoflowLog().Text());

  EXPECT_EQ(run_.Run("rules check result_0.txt"), ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr("3.0.0"));
  EXPECT_EQ(run_.Run("rules check --ruleset 3.0.0 --round v3.0 result_0.txt"), ExitStatus::kUsage);
  EXPECT_EQ(run_.Run("rules check --ruleset 4.0.0 result_0.txt"), ExitStatus::kUsage);
}

TEST_F(RulesCommandTest, AFrozenRoundIsVerifiedAndJudges) {
  WriteKeys();
  run_.Write("result_0.txt", CosmoflowLog().Text());

  EXPECT_EQ(run_.Run("rules freeze v3.0 --key key.pem -o pack.json"), ExitStatus::kDone);
  EXPECT_EQ(run_.Run("rules verify pack.json --public-key public.pem --json"), ExitStatus::kDone);
  EXPECT_EQ(Json::parse(run_.out)["digest"], rules::FindRuleSet("3.0.0")->digest());
  EXPECT_EQ(Json::parse(run_.out)["program"], "the same rules");
  EXPECT_EQ(run_.Run("rules check --round pack.json --public-key public.pem result_0.txt"),
            ExitStatus::kDone);
  run_.env.variables["ASSAY_RULES_KEY"] = "public.pem";
  EXPECT_EQ(run_.Run("rules diff v3.0 pack.json"), ExitStatus::kDone);
}

TEST_F(RulesCommandTest, AFrozenRoundThatWasTouchedIsRefused) {
  WriteKeys();
  run_.Write("result_0.txt", CosmoflowLog().Text());
  ASSERT_EQ(run_.Run("rules freeze v3.0 --key key.pem -o pack.json"), ExitStatus::kDone);

  EXPECT_EQ(run_.Run("rules check --round pack.json result_0.txt"), ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr("--public-key"));
  EXPECT_EQ(run_.Run("rules verify pack.json --public-key other.pem"), ExitStatus::kFailed);
  EXPECT_THAT(run_.err, HasSubstr("pack.json: the signature is not of this content"));
  // Another wording keeps the digest, but not the signature.
  const std::string pack = *ReadFile(run_.home.Path("pack.json"));
  run_.Write("pack.json", absl::StrReplaceAll(pack, {{"log closed or open", "log what you like"}}));
  EXPECT_EQ(run_.Run("rules verify pack.json --public-key public.pem"), ExitStatus::kFailed);
  run_.Write("pack.json", absl::StrReplaceAll(pack, {{"0.124", "0.125"}}));
  EXPECT_EQ(run_.Run("rules verify pack.json --public-key public.pem"), ExitStatus::kFailed);
  EXPECT_THAT(run_.err, HasSubstr("digest"));
}

TEST_F(RulesCommandTest, DiffShowsWhatARoundChanged) {
  EXPECT_EQ(run_.Run("rules diff v1.0 v1.0"), ExitStatus::kDone);
  // The logs' rules are the same; the reference was measured anew.
  EXPECT_EQ(run_.Run("rules diff v1.0 v2.0 -o ndjson"), ExitStatus::kDifferent);
  EXPECT_THAT(run_.out, HasSubstr("cosmoflow (reference)"));
  EXPECT_THAT(run_.out, HasSubstr("convergence at batch size 32"));
  EXPECT_THAT(run_.out, HasSubstr("33 runs, 6 to 9 epochs"));
  EXPECT_THAT(run_.out, Not(HasSubstr("R-")));
  EXPECT_EQ(run_.Run("rules diff v2.0 v3.0 -o ndjson"), ExitStatus::kDifferent);

  int changed = 0;
  bool has_staging = false;
  for (const Json& change : Items()) {
    changed += change["change"] == "changed";
    has_staging |= change["key"] == "staging_start" && change["change"] == "changed" &&
                   change["before"] == "if logged: a line after run_start" &&
                   change["after"] == "if logged";
    EXPECT_TRUE(change["change"] == "changed" || change["change"] == "added") << change;
  }
  EXPECT_TRUE(has_staging);
  EXPECT_EQ(changed, 4);  // staging_start, staging on the clock, both lists of benchmarks
}

TEST_F(RulesCommandTest, ExplainKnowsRulesAboutBorrowing) {
  for (const char* id : {"R-BOR-001", "R-BOR-002", "R-BOR-003", "R-BOR-004", "r-bor-005"}) {
    EXPECT_EQ(run_.Run(absl::StrCat("rules explain ", id, " --json")), ExitStatus::kDone) << id;
    EXPECT_EQ(Json::parse(run_.out)["section"], "Training rules, Hyperparameter Borrowing");
  }
  EXPECT_EQ(run_.Run("rules explain R-BOR-099"), ExitStatus::kNotFound);
}

TEST_F(RulesCommandTest, ExplainKnowsRulesAboutExtensions) {
  for (const char* id : {"R-EXT-001", "R-EXT-002", "R-EXT-003"}) {
    EXPECT_EQ(run_.Run(absl::StrCat("rules explain ", id, " --json")), ExitStatus::kDone) << id;
    EXPECT_THAT(Json::parse(run_.out)["remedy"].get<std::string>(), HasSubstr("open division"));
  }
}

TEST_F(RulesCommandTest, ExplainKnowsRulesAboutRanks) {
  for (const char* id : {"R-RNK-001", "R-RNK-002", "R-RNK-003", "R-RNK-004", "R-RNK-005"}) {
    EXPECT_EQ(run_.Run(absl::StrCat("rules explain ", id, " --json")), ExitStatus::kDone) << id;
    EXPECT_EQ(Json::parse(run_.out)["key"], "spatial_grid");
  }
  EXPECT_EQ(run_.Run("rules explain R-RNK-006"), ExitStatus::kDone);
}

TEST_F(RulesCommandTest, ExplainKnowsRulesAboutLines) {
  EXPECT_EQ(run_.Run("rules explain r-log-003 --json"), ExitStatus::kDone);
  EXPECT_NE(Json::parse(run_.out)["remedy"], "");
  EXPECT_EQ(run_.Run("rules explain R-LOG-999"), ExitStatus::kNotFound);
}

}  // namespace
}  // namespace assay
