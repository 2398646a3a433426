// Rules about a log as a whole, which every round has: what a line must be, which configs exist,
// when the clock must start. The tables of a round (ruleset.h) hold the rules about keys.

#ifndef COMMON_RULES_LOG_RULES_H_
#define COMMON_RULES_LOG_RULES_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

#include "common/rules/finding.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

// All of them, by id.
std::span<const TextRule> LogRules();

// A finding of the rule `id`, with its texts. `id` must be one of the table.
Finding LogFinding(absl::string_view id, std::string error_class, int64_t line, std::string found);

}  // namespace assay::rules

#endif  // COMMON_RULES_LOG_RULES_H_
