// What an operator configures is what agents know.

#include "server/preflight_config.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/config.h"
#include "worker/agent/preflight/preflight.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

std::vector<std::string> NamesOf(const core::PreflightPolicy& policy) {
  std::vector<std::string> names;
  for (const core::NodeCheck& check : policy.checks)
    names.push_back(check.check);
  return names;
}

// What a node can check alone, and what its gang can.
std::vector<std::string> AllChecks() {
  std::vector<std::string> names = agent::PreflightChecks();
  names.insert(names.end(), {core::kFabricLinkRate, core::kFabricLatency});
  return names;
}

TEST(PreflightConfigTest, AnEmptySectionMeansAllThatAgentsCanCheck) {
  EXPECT_THAT(NamesOf(PreflightPolicyOf({})), UnorderedElementsAreArray(AllChecks()));
  EXPECT_EQ(PreflightPolicyOf({}).percent_of_median, 80);
  EXPECT_EQ(PreflightPolicyOf({}).time_limit_us, 60'000'000);
}

TEST(PreflightConfigTest, WithoutTheSectionNothingIsChecked) {
  v1::ServerConfig config;
  EXPECT_THAT(PolicyOf(config).preflight.checks, IsEmpty());
  config.mutable_preflight();
  EXPECT_THAT(PolicyOf(config).preflight.checks, SizeIs(AllChecks().size()));
  EXPECT_THAT(PolicyOf(config).profile_preflights, IsEmpty());
  v1::SlurmProfile* const profile = config.mutable_launcher()->mutable_slurm()->add_profiles();
  profile->set_name("gpu");
  EXPECT_THAT(PolicyOf(config).profile_preflights, IsEmpty());
  profile->mutable_preflight()->set_percent_of_median(90);
  EXPECT_EQ(PolicyOf(config).profile_preflights.at("gpu").percent_of_median, 90);
}

TEST(PreflightConfigTest, NamedChecksDifferFromTheTable) {
  v1::PreflightConfig config;
  const auto set = [&config](const char* name, v1::PreflightCheck::Policy policy) {
    v1::PreflightCheck* const check = config.add_checks();
    check->set_check(name);
    check->set_policy(policy);
  };
  set("memory", v1::PreflightCheck::RECORD);
  set("compute", v1::PreflightCheck::OFF);
  set("quiet", v1::PreflightCheck::GATE);
  EXPECT_THAT(PreflightProblems(config, "preflight"), IsEmpty());
  const core::PreflightPolicy policy = PreflightPolicyOf(config);
  EXPECT_THAT(policy.checks, SizeIs(AllChecks().size() - 1));
  for (const core::NodeCheck& check : policy.checks) {
    EXPECT_NE(check.check, "compute");
    if (check.check == "memory") {
      EXPECT_EQ(check.policy, core::CheckPolicy::kRecord);
    }
    if (check.check == "quiet") {
      EXPECT_EQ(check.policy, core::CheckPolicy::kGate);
    }
    if (check.check == "dataset-disk") {
      EXPECT_EQ(check.policy, core::CheckPolicy::kWarn);
    }
  }
  config.set_time_limit_s(601);
  EXPECT_THAT(PreflightProblems(config, "preflight").at(0), HasSubstr("time_limit_s: is 601"));
}

}  // namespace
}  // namespace assay
