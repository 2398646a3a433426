// What a submission must say and what must be there for it, whatever its benchmark and round: no
// rule of MLPerf's. The same is said to who plans it and to who submits it.

#ifndef COMMON_RULES_SPEC_RULES_H_
#define COMMON_RULES_SPEC_RULES_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"

#include "common/rules/finding.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

// The rules, by id.
//   R-SPC-001 a text that is needed, of a length; 002 a number within its bounds; 003 the dataset
//   is registered; 004 and is for the benchmark; 005 instances of a throughput set; 006 there are
//   so many nodes: a warning, since nodes may come.
std::span<const TextRule> SpecRules();

// A violation of the rule `id` by the field `key`. What is empty is said by the rule.
Finding SpecFinding(absl::string_view id, absl::string_view key, std::string expected,
                    std::string found, std::string remedy = "");

}  // namespace assay::rules

#endif  // COMMON_RULES_SPEC_RULES_H_
