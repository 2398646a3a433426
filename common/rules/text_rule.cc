#include "common/rules/text_rule.h"

#include <algorithm>
#include <utility>

#include "common/log.h"

namespace assay::rules {

const TextRule& FindRule(std::span<const TextRule> rules, absl::string_view id) {
  const auto rule = std::find_if(rules.begin(), rules.end(),
                                 [id](const TextRule& candidate) { return candidate.id == id; });
  CHECK(rule != rules.end()) << "id=" << id;
  return *rule;
}

Finding Violation(const TextRule& rule, std::string error_class, std::string found) {
  return {.rule_id = rule.id,
          .error_class = std::move(error_class),
          .key = rule.key,
          .expected = rule.expected,
          .found = std::move(found),
          .section = rule.section,
          .remedy = rule.remedy};
}

}  // namespace assay::rules
