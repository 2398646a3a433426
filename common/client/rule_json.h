// Rounds and their rules as JSON: what a rule wants, where it stands, what to do. Pure functions.

#ifndef COMMON_CLIENT_RULE_JSON_H_
#define COMMON_CLIENT_RULE_JSON_H_

#include <string>
#include <vector>

#include "common/client/json.h"
#include "common/rules/ruleset.h"

namespace assay::client {

// As a coordinator lists it: assay.round/v1.
Json RuleSetJson(const rules::RuleSet& rule_set);

// The same with how it scores, its benchmarks (benchmark_details) and every rule of its configs
// (rules: id, key, config, expected, section, remedy).
Json RoundDetailsJson(const rules::RuleSet& rule_set);

// Those of all built-in rounds and of packages, in order.
std::vector<std::string> AllRuleIds();

// The rule with this id: id, key, expected, section, remedy, and of a rule about a key what each
// built-in round makes of it (rounds). Null if there is none.
Json FindRuleJson(const std::string& id);

}  // namespace assay::client

#endif  // COMMON_CLIENT_RULE_JSON_H_
