#include "common/rules/registry.h"

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/rules/rounds.h"

namespace assay::rules {
namespace {

using RoundTable = std::array<RuleSet, 4>;

const RoundTable& Rounds() {
  static const RoundTable* const rounds = new RoundTable{RuleSet(HpcV0_7()), RuleSet(HpcV1_0()),
                                                         RuleSet(HpcV2_0()), RuleSet(HpcV3_0())};
  return *rounds;
}

}  // namespace

const RuleSet* FindRuleSet(absl::string_view name) {
  absl::ConsumePrefix(&name, "hpc");
  if (!absl::ConsumePrefix(&name, "-")) absl::ConsumePrefix(&name, " ");
  absl::ConsumePrefix(&name, "v");
  for (const RuleSet& rules : Rounds()) {
    const absl::string_view version = absl::StripPrefix(rules.name(), "hpc-");
    if (name == version || absl::StrCat(name, ".0") == version) return &rules;
  }
  return nullptr;
}

std::vector<const RuleSet*> BuiltInRuleSets() {
  std::vector<const RuleSet*> all;
  for (const RuleSet& rules : Rounds())
    all.push_back(&rules);
  return all;
}

}  // namespace assay::rules
