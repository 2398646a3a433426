// What a submission may ask of the facility's nodes: no rule of MLPerf's, but what would wait for
// ever is refused before anything is queued.

#ifndef COMMON_RULES_FLEET_RULES_H_
#define COMMON_RULES_FLEET_RULES_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"

#include "common/rules/finding.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

// The rules, by id.
//   R-FLT-001 the profile exists; 002 an allocation may have so many nodes; 003 a run fits into the
//   longest allocation; 004 nodes that may be taken away are consented to.
std::span<const TextRule> FleetRules();

// A violation of the rule `id`, with a remedy that knows the numbers where there is one.
Finding FleetFinding(absl::string_view id, std::string found, std::string remedy = "");

}  // namespace assay::rules

#endif  // COMMON_RULES_FLEET_RULES_H_
