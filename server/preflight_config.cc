#include "server/preflight_config.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace assay {
namespace {

constexpr int kTimeLimitMaxS = 600;

// What an operator gets who says nothing of a check (specification of fleets, section 5).
struct Usual {
  const char* check;
  core::CheckPolicy policy;
};
constexpr Usual kUsual[] = {
    {"quiet", core::CheckPolicy::kWarn},
    {"clock", core::CheckPolicy::kGate},
    {"gpu", core::CheckPolicy::kGate},
    {"memory", core::CheckPolicy::kGate},
    {"compute", core::CheckPolicy::kGate},
    {"dataset-disk", core::CheckPolicy::kWarn},
    {"stage-disk", core::CheckPolicy::kWarn},
    {"stage-space", core::CheckPolicy::kGate},
    {core::kFabricLinkRate, core::CheckPolicy::kGate},
    {core::kFabricLatency, core::CheckPolicy::kWarn},
};

// nullopt: the check is off.
std::optional<core::CheckPolicy> PolicyOf(const v1::PreflightConfig& config, const Usual& usual) {
  std::optional<core::CheckPolicy> policy = usual.policy;
  for (const v1::PreflightCheck& check : config.checks()) {
    if (check.check() != usual.check) continue;
    switch (check.policy()) {
      case v1::PreflightCheck::RECORD:
        policy = core::CheckPolicy::kRecord;
        break;
      case v1::PreflightCheck::WARN:
        policy = core::CheckPolicy::kWarn;
        break;
      case v1::PreflightCheck::GATE:
        policy = core::CheckPolicy::kGate;
        break;
      default:
        policy.reset();
    }
  }
  return policy;
}

std::string KnownNames() {
  return absl::StrJoin(kUsual, ", ",
                       [](std::string* out, const Usual& usual) { out->append(usual.check); });
}

}  // namespace

std::vector<std::string> PreflightProblems(const v1::PreflightConfig& config,
                                           absl::string_view field) {
  std::vector<std::string> problems;
  for (const v1::PreflightCheck& check : config.checks()) {
    const bool is_known =
        std::any_of(std::begin(kUsual), std::end(kUsual),
                    [&check](const Usual& usual) { return check.check() == usual.check; });
    if (!is_known)
      problems.push_back(absl::StrCat(field, ".checks: there is no check \"", check.check(),
                                      "\"; choose among ", KnownNames()));
    if (check.policy() == v1::PreflightCheck::POLICY_UNSPECIFIED)
      problems.push_back(absl::StrCat(field, ".checks: ", check.check(),
                                      " has no policy: choose OFF, RECORD, WARN or GATE"));
  }
  if (config.time_limit_s() < 0 || config.time_limit_s() > kTimeLimitMaxS)
    problems.push_back(absl::StrCat(field, ".time_limit_s: is ", config.time_limit_s(),
                                    ": give 0 to ", kTimeLimitMaxS));
  if (config.percent_of_median() < 0 || config.percent_of_median() > 100)
    problems.push_back(absl::StrCat(field, ".percent_of_median: is ", config.percent_of_median(),
                                    ": give 0 to 100"));
  return problems;
}

core::PreflightPolicy PreflightPolicyOf(const v1::PreflightConfig& config) {
  core::PreflightPolicy policy;
  for (const Usual& usual : kUsual)
    if (const auto wanted = PolicyOf(config, usual); wanted.has_value())
      policy.checks.push_back({.check = usual.check, .policy = *wanted});
  if (config.time_limit_s() > 0) policy.time_limit_us = int64_t{config.time_limit_s()} * 1'000'000;
  if (config.percent_of_median() > 0) policy.percent_of_median = config.percent_of_median();
  return policy;
}

}  // namespace assay
