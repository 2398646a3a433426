// Rules whose texts are a table and whose checks are code: about logs as a whole, borrowing,
// extensions. (Rules about keys are data altogether: ruleset.h.)

#ifndef COMMON_RULES_TEXT_RULE_H_
#define COMMON_RULES_TEXT_RULE_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"

#include "common/rules/finding.h"

namespace assay::rules {

struct TextRule {
  const char* id;
  const char* key;  // empty where it is about no key
  const char* expected;
  const char* section;
  const char* remedy;
};

// The rule `id`, which must be one of them.
const TextRule& FindRule(std::span<const TextRule> rules, absl::string_view id);

// A violation of `rule`, in its words.
Finding Violation(const TextRule& rule, std::string error_class, std::string found);

}  // namespace assay::rules

#endif  // COMMON_RULES_TEXT_RULE_H_
