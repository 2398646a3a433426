#include "common/rules/spec_rules.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::rules {
namespace {

constexpr char kSpecSection[] = "Assay, submissions";

constexpr TextRule kSpecRules[] = {
    {"R-SPC-001", "", "a text", kSpecSection, "write it into the submission"},
    {"R-SPC-002", "", "a number within its bounds", kSpecSection, "choose a number within them"},
    {"R-SPC-003", "dataset", "a dataset that is registered", kSpecSection,
     "'assay dataset list' shows those that are; an operator adds others by 'assay dataset add'"},
    {"R-SPC-004", "dataset", "a dataset of the benchmark", kSpecSection,
     "'assay dataset list' shows what each is for"},
    {"R-SPC-005", "run_count", "instances that can start together", kSpecSection,
     "ask for fewer instances or nodes, and for no replacements: one that fails is left out"},
    {"R-SPC-006", "node_count", "nodes that are there", kSpecSection,
     "it would wait until there are so many: 'assay node list' shows those that match"},
};

}  // namespace

std::span<const TextRule> SpecRules() {
  return kSpecRules;
}

Finding SpecFinding(absl::string_view id, absl::string_view key, std::string expected,
                    std::string found, std::string remedy) {
  Finding finding =
      Violation(FindRule(kSpecRules, id), absl::StrCat("spec:", key), std::move(found));
  finding.key = std::string(key);
  if (!expected.empty()) finding.expected = std::move(expected);
  if (!remedy.empty()) finding.remedy = std::move(remedy);
  return finding;
}

}  // namespace assay::rules
