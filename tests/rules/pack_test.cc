#include "common/rules/pack.h"

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/ed25519.h"
#include "common/file.h"
#include "common/json_reader.h"
#include "common/rules/check.h"
#include "common/rules/facility_round.h"
#include "common/rules/pack_names.h"
#include "common/rules/registry.h"
#include "common/sha256.h"
#include "tests/rules/sample_log.h"
#include "tests/support/status_matchers.h"

namespace assay::rules {
namespace {

using ::assay::testing::CosmoflowLog;
using ::assay::testing::DeepcamLog;
using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::testing::HasSubstr;

// Published rounds are frozen. If one of these changes, verdicts given before were made by other
// rules: undo the change, or add a round.
TEST(PackTest, FrozenRoundsHaveTheirDigests) {
  const std::map<std::string, std::string> kDigests = {
      {"hpc-0.7.0", "1e96d4a06cdf3cebc3911438616723af970905517df6e876c78d17210967517d"},
      {"hpc-1.0.0", "ca73d742f1802c69a300e658e2911d6ab5d24d6d38d1eb2020f3a764beddaef8"},
      {"hpc-2.0.0", "80bd0763872f89c0e8fc2d72d57898cddbdfdf91171299e51c5ec9b91f714cb0"},
      {"hpc-3.0.0", "bca6fe36241dc877b627ab11cb10d59d9fd2f7ed3e5ad7ae0a568a3658251322"}};
  std::map<std::string, std::string> digests;
  for (const RuleSet* rules : BuiltInRuleSets())
    digests[rules->name()] = rules->digest();
  EXPECT_EQ(digests, kDigests);
}

// Entries accepted before version 2 have these.
TEST(PackTest, FrozenRoundsAreKnownByTheirFormerDigests) {
  const std::pair<const char*, const char*> kFormer[] = {
      {"hpc-0.7.0", "e1b668652da34f509ef862f7582d3ea6c22f88a763e89e28d4bcf6545c7c9382"},
      {"hpc-1.0.0", "b5d50b697e78992790cd4e34f22bc56c080f733857f259cb13e9b98c54d82dfd"},
      {"hpc-2.0.0", "3dfcb961532482323c9e7c03f650360e7086f3c3713d77ce55433af1bece9d90"},
      {"hpc-3.0.0", "26b90523bfbdd5e9e566c7064b333becd0614436b17e79fb8133b32693b29c0a"}};
  for (const auto& [name, digest] : kFormer) {
    for (const RuleSet* rules : BuiltInRuleSets())
      EXPECT_EQ(rules->IsKnownAs(digest), rules->name() == name) << rules->name();
  }
}

// packs/ has a pack that a program of version 1 froze and signed.
TEST(PackTest, APackOfVersionOneIsVerifiedAsItWasAndJudgesAsTheRoundDoes) {
  const absl::StatusOr<std::string> file = ReadFile("tests/rules/packs/hpc-0.7.0.v1.json");
  const absl::StatusOr<std::string> key = ReadFile("tests/rules/packs/signer.pub.pem");
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT(key, IsOk());

  const absl::StatusOr<Pack> pack = ReadPack(*file, "hpc-0.7.0.v1.json");

  ASSERT_THAT(pack, IsOk());
  EXPECT_EQ(pack->digest, "e1b668652da34f509ef862f7582d3ea6c22f88a763e89e28d4bcf6545c7c9382");
  EXPECT_THAT(Ed25519Verify(*key, pack->message, pack->signature), IsOk());
  EXPECT_EQ(RuleSet(pack->data).digest(), FindRuleSet("0.7.0")->digest());
  EXPECT_EQ(pack->data.scoring.counts, Counts::kReachedTarget);

  // What version 1 did not have is not covered by its digest and its signature.
  for (const char* const added :
       {R"("counts": "compliant", "is_mlperf")", R"("official_round": "hpc-1.0.0", "is_mlperf")",
        R"("scaling_folders": true, "is_mlperf")", R"("paper": "", "is_mlperf")"})
    EXPECT_THAT(ReadPack(absl::StrReplaceAll(*file, {{"\"is_mlperf\"", added}}), "added.json"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version 1")));
  for (const char* const added : {R"("fixed": {"kernel_size": 5}, "runs_required")",
                                  R"("reference_points": [], "runs_required")",
                                  R"("reference_unit": "samples", "runs_required")",
                                  R"("reference_values": {}, "runs_required")"})
    EXPECT_THAT(ReadPack(absl::StrReplaceAll(*file, {{"\"runs_required\"", added}}), "added.json"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("round.benchmarks[0].")));

  // One that is no built-in round: by the rules that all others had.
  RuleSetData other = FindRuleSet("0.7.0")->data();
  other.benchmarks[0].target = 0.5;
  const std::string changed =
      absl::StrReplaceAll(*file, {{"\"target\": 0.124", "\"target\": 0.5"},
                                  {pack->digest, Sha256Hex(FormerCanonicalText(other))}});
  const absl::StatusOr<Pack> unknown = ReadPack(changed, "other.json");
  ASSERT_THAT(unknown, IsOk());
  EXPECT_EQ(unknown->data.scoring.counts, Counts::kCompliant);
  EXPECT_TRUE(unknown->data.official_round.empty());
}

TEST(PackTest, EveryBuiltInRoundSurvivesWritingAndReading) {
  for (const RuleSet* rules : BuiltInRuleSets()) {
    const std::string file = WritePack(rules->data(), "signed");
    const absl::StatusOr<Pack> pack = ReadPack(file, "pack");
    ASSERT_THAT(pack, IsOk());
    EXPECT_EQ(pack->digest, rules->digest());
    EXPECT_EQ(pack->signature, "signed");
    EXPECT_EQ(pack->message, PackMessage(rules->data()));
    EXPECT_EQ(WritePack(pack->data, "signed"), file);

    const RuleSet read(pack->data);
    for (const std::string& log :
         {CosmoflowLog().Text(), DeepcamLog().Remove("seed").Text(), std::string("no log")}) {
      EXPECT_EQ(Check(log, read).findings, Check(log, *rules).findings) << rules->name();
    }
  }
}

TEST(PackTest, WordingIsSignedButNotPartOfTheDigest) {
  RuleSetData data = FindRuleSet("3.0.0")->data();
  data.configs[0].rules[0].remedy = "another wording";

  EXPECT_EQ(RuleSet(data).digest(), FindRuleSet("3.0.0")->digest());
  EXPECT_NE(PackMessage(data), PackMessage(FindRuleSet("3.0.0")->data()));
}

// Two conditions may read alike and judge differently.
TEST(PackTest, TheDigestTellsKindsApartWhoseWordsAreTheSame) {
  RuleSetData data = FindRuleSet("3.0.0")->data();
  std::set<std::string> digests;
  for (const Condition::Kind kind : {Condition::Kind::kOneOf, Condition::Kind::kOneOfSet}) {
    data.configs[0].rules[0].checks = {{.kind = kind, .operands = {"a", "b"}}};
    digests.insert(RuleSet(data).digest());
  }
  data.configs[0].rules[0].checks = {{.kind = Condition::Kind::kTrue}};
  digests.insert(RuleSet(data).digest());
  data.configs[0].rules[0].checks = {{.kind = Condition::Kind::kOneOf, .operands = {true}}};
  digests.insert(RuleSet(data).digest());

  EXPECT_EQ(digests.size(), 4u);
}

TEST(PackTest, DamagedFilesAreRefusedWithThePlace) {
  const std::string file = WritePack(FindRuleSet("3.0.0")->data(), "");
  const std::tuple<const char*, const char*, const char*> kDamages[] = {
      {"assay.rule_pack/v2", "assay.rule_pack/v3", "schema"},
      {"\"counts\": \"compliant\"", "\"counts\": \"all\"", "the unknown \"all\""},
      {"\"batch_size\": 64", "\"batch_size\": 16", "cosmoflow_ref_64 does not"},
      {"\"epochs\": [8, 8", "\"epochs\": [0, 8", "epochs[0] must be a number above 0"},
      {"\"init_limit_ms\": 1800000", "\"init_limit_ms\": \"long\"", "round.init_limit_ms"},
      {"\"label\"", "\"lable\"", "round.lable is unknown"},
      {"\"occurrence\": \"exactly_one\"", "\"occurrence\": \"thrice\"", "the unknown \"thrice\""},
      {"\"kind\": \"greater\", \"operands\": [0]", "\"kind\": \"greater\", \"operands\": []",
       "do not fit"},
      {"\"kind\": \"greater\", \"operands\": [0]", "\"kind\": \"greater\", \"operands\": [\"x\"]",
       "do not fit"},
      {"\"configs\": [", "\"configs\": [7, ", "round.configs[0] is no object"}};
  for (const auto& [from, to, message] : kDamages) {
    const std::string damaged = absl::StrReplaceAll(file, {{from, to}});
    ASSERT_NE(damaged, file) << from;
    EXPECT_THAT(ReadPack(damaged, "pack.json"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
  EXPECT_THAT(ReadPack("{", "pack.json"), StatusIs(absl::StatusCode::kInvalidArgument));
  // Rules that still read, but are not those of the digest.
  EXPECT_THAT(ReadPack(absl::StrReplaceAll(file, {{"0.124", "0.125"}}), "pack.json"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("digest")));
}

TEST(PackTest, EveryKindHasANameOfItsOwn) {
  std::set<absl::string_view> names;
  for (int i = 0; i <= static_cast<int>(Condition::Kind::kInitWithin); ++i) {
    const auto kind = static_cast<Condition::Kind>(i);
    EXPECT_TRUE(names.insert(NameOf(kind)).second) << i;
    EXPECT_EQ(FromName<Condition::Kind>(NameOf(kind)), kind);
  }
  EXPECT_FALSE(FromName<Condition::Kind>("").has_value());
}

// The check keeps each name that a config asks for once, which is exact only as long as a config
// that can be asked for again cannot die and asks for nothing itself.
TEST(PackTest, ConfigsThatMayBeAskedForTwiceCannotDie) {
  for (const RuleSet* rules : BuiltInRuleSets()) {
    for (const Config& config : rules->data().configs) {
      for (const KeyRule& rule : config.rules) {
        if (rule.key.find("submission_") != std::string::npos) continue;  // heard once only
        for (const Effect& effect : rule.effects) {
          if (effect.kind != Effect::Kind::kEnqueue) continue;
          for (const Config& asked : rules->data().configs) {
            if (asked.name.rfind(effect.prefix, 0) != 0 || asked.name == config.name) continue;
            for (const KeyRule& own : asked.rules)
              EXPECT_TRUE(own.some_line.empty() && own.effects.empty()) << asked.name;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::rules
