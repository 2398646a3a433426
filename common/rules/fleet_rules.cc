#include "common/rules/fleet_rules.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::rules {
namespace {

constexpr char kFleetSection[] = "Assay, nodes of a facility";

constexpr TextRule kFleetRules[] = {
    {"R-FLT-001", "fleet", "a profile that the operator has configured, or none", kFleetSection,
     "leave fleet out, or ask an operator for the names of profiles"},
    {"R-FLT-002", "node_count", "no more nodes than an allocation may have", kFleetSection,
     "ask for fewer nodes, or choose another profile"},
    {"R-FLT-003", "minutes_per_run", "runs that fit into the longest allocation", kFleetSection,
     "say how long a run takes by minutes_per_run, or choose another profile"},
    {"R-FLT-004", "allow_preemptible", "consent, where nodes may be taken away at any time",
     kFleetSection, "write allow_preemptible = true, or choose another profile"},
};

}  // namespace

std::span<const TextRule> FleetRules() {
  return kFleetRules;
}

Finding FleetFinding(absl::string_view id, std::string found, std::string remedy) {
  const TextRule& rule = FindRule(kFleetRules, id);
  Finding finding = Violation(rule, absl::StrCat("fleet:", rule.key), std::move(found));
  if (!remedy.empty()) finding.remedy = std::move(remedy);
  return finding;
}

}  // namespace assay::rules
