// All rounds that are built in.

#ifndef COMMON_RULES_REGISTRY_H_
#define COMMON_RULES_REGISTRY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/rules/ruleset.h"

namespace assay::rules {

// The built-in rule set named "hpc-3.0.0", "3.0.0", "3.0", "v3.0" or "hpc 3.0.0"; null for others.
// Lives as long as the process.
const RuleSet* FindRuleSet(absl::string_view name);

// Oldest first.
std::vector<const RuleSet*> BuiltInRuleSets();

// Their names, in the same order, without reading what they say: for help and completion.
std::vector<std::string> BuiltInRoundNames();

// True if a built-in round has the benchmark.
bool IsMlperfBenchmark(absl::string_view name);

}  // namespace assay::rules

#endif  // COMMON_RULES_REGISTRY_H_
