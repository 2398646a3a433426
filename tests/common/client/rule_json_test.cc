#include "common/client/rule_json.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/registry.h"

namespace assay::client {
namespace {

using ::testing::Contains;

TEST(RuleJsonTest, ExplainsEveryRule) {
  for (const std::string& id : AllRuleIds()) {
    const Json rule = FindRuleJson(id);
    ASSERT_TRUE(rule.is_object()) << id;
    EXPECT_EQ(rule.value("id", ""), id);
    EXPECT_NE(rule.value("expected", ""), "") << id;
  }
  EXPECT_THAT(AllRuleIds(), Contains("R-TIM-001"));
  EXPECT_TRUE(FindRuleJson("R-NONE-999").is_null());
}

TEST(RuleJsonTest, HasEveryRuleOfARound) {
  for (const rules::RuleSet* round : rules::BuiltInRuleSets()) {
    const Json details = RoundDetailsJson(*round);
    EXPECT_EQ(details["digest"], round->digest());
    EXPECT_EQ(details["benchmark_details"].size(), round->data().benchmarks.size());
    for (const Json& rule : details["rules"])
      EXPECT_FALSE(FindRuleJson(rule["id"]).is_null()) << rule;
  }
}

}  // namespace
}  // namespace assay::client
