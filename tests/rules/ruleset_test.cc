#include "common/rules/ruleset.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/pack.h"
#include "common/rules/registry.h"

namespace assay::rules {
namespace {

using ::testing::StartsWith;

TEST(RegistryTest, NamesAreThoseOfTheRounds) {
  std::vector<std::string> names;
  for (const RuleSet* rules : BuiltInRuleSets())
    names.push_back(rules->name());
  EXPECT_EQ(BuiltInRoundNames(), names);
}

TEST(RegistryTest, RoundsHaveSeveralNames) {
  for (const char* name : {"hpc-3.0.0", "3.0.0", "3.0", "v3.0", "hpc 3.0.0", "hpc-v3.0"}) {
    ASSERT_NE(FindRuleSet(name), nullptr) << name;
    EXPECT_EQ(FindRuleSet(name)->name(), "hpc-3.0.0");
  }
  for (const char* name : {"", "3", "hpc", "training-3.0.0", "4.0.0", "hpc-3.0.0x"}) {
    EXPECT_EQ(FindRuleSet(name), nullptr) << name;
  }
}

TEST(RegistryTest, OpenfoldCameWithRoundThree) {
  EXPECT_EQ(FindRuleSet("2.0.0")->FindBenchmark("openfold"), nullptr);
  EXPECT_NE(FindRuleSet("3.0.0")->FindBenchmark("openfold"), nullptr);
}

TEST(RuleSetTest, RoundsDifferOnlyAsTheySay) {
  const RuleSetData& v1 = FindRuleSet("1.0.0")->data();
  RuleSetData v2 = FindRuleSet("2.0.0")->data();
  v2.name = v1.name;

  EXPECT_EQ(FormerCanonicalText(v1), FormerCanonicalText(v2)) << "the rules of logs are the same";
  v2.official_round = v1.official_round;
  for (size_t i = 0; i < v1.benchmarks.size(); ++i)  // round 2.0 measured more batch sizes
    v2.benchmarks[i].reference_points = v1.benchmarks[i].reference_points;
  EXPECT_EQ(CanonicalText(v1), CanonicalText(v2));
  EXPECT_TRUE(v1.staging_on_the_clock);
  EXPECT_FALSE(FindRuleSet("3.0.0")->data().staging_on_the_clock);
}

TEST(RuleSetTest, TheDigestChangesWithAnyRule) {
  RuleSetData data = FindRuleSet("3.0.0")->data();
  std::set<std::string> digests = {FindRuleSet("3.0.0")->digest()};

  EXPECT_EQ(RuleSet(data).digest(), *digests.begin());
  data.configs[0].rules[0].occurrence = Occurrence::kOptional;
  digests.insert(RuleSet(data).digest());
  data.benchmarks[0].target = 0.125;
  digests.insert(RuleSet(data).digest());
  data.configs[0].rules[0].checks.clear();
  digests.insert(RuleSet(data).digest());
  data.init_limit_ms += 1;
  digests.insert(RuleSet(data).digest());
  data.scoring.counts = Counts::kReachedTarget;
  digests.insert(RuleSet(data).digest());
  data.benchmarks[0].reference_points.pop_back();
  digests.insert(RuleSet(data).digest());
  data.benchmarks[0].fixed = {{"kernel_size", 2}};
  digests.insert(RuleSet(data).digest());

  EXPECT_EQ(digests.size(), 8u);
  data.benchmarks[0].reference_values.clear();  // nobody is judged by them
  EXPECT_TRUE(digests.contains(RuleSet(data).digest()));
}

// An id means one key, in every round, so that a finding can be looked up.
TEST(RuleSetTest, IdsAreUniqueAndStable) {
  std::map<std::string, std::string> key_of;
  for (const RuleSet* rules : BuiltInRuleSets()) {
    std::set<std::string> seen;
    for (const Config& config : rules->data().configs) {
      for (const KeyRule& rule : config.rules) {
        EXPECT_THAT(rule.id, StartsWith("R-"));
        EXPECT_EQ(key_of.try_emplace(rule.id, rule.key).first->second, rule.key) << rule.id;
        EXPECT_TRUE(absl::StartsWith(config.name, "open_") || seen.insert(rule.id).second)
            << rule.id << " twice in " << rules->name();
        EXPECT_FALSE(rule.section.empty()) << rule.id;
        EXPECT_FALSE(rule.remedy.empty()) << rule.id;
      }
    }
  }
  EXPECT_EQ(FindRuleSet("3.0.0")->FindRuleById("R-HP-004")->key, "opt_name");
  EXPECT_EQ(FindRuleSet("3.0.0")->FindRuleById("R-HP-999"), nullptr);
}

}  // namespace
}  // namespace assay::rules
