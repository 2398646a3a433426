#include "common/rules/set_nodes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/rules/log_rules.h"

namespace assay::rules {
namespace {

// Of large gangs only what differs is worth telling.
constexpr size_t kPlacesMax = 8;

// "n2 in place of n1 (rank 0)", for each node that another has taken the place of.
std::string Difference(const RunNodes& before, const RunNodes& after) {
  std::vector<std::string> places;
  size_t count = 0;
  const size_t common = std::min(before.nodes.size(), after.nodes.size());
  for (size_t i = 0; i < common; ++i) {
    if (before.nodes[i] == after.nodes[i] || ++count > kPlacesMax) continue;
    places.push_back(
        absl::StrCat(after.nodes[i], " in the place of ", before.nodes[i], " (node ", i, ")"));
  }
  if (count > kPlacesMax) places.push_back(absl::StrCat(count - kPlacesMax, " more"));
  if (before.nodes.size() != after.nodes.size())
    places.push_back(absl::StrCat(after.nodes.size(), " nodes, not ", before.nodes.size()));
  return absl::StrJoin(places, ", ");
}

}  // namespace

std::vector<Finding> CheckSetNodes(std::span<const RunNodes> runs) {
  std::vector<Finding> findings;
  const RunNodes* before = nullptr;
  for (const RunNodes& run : runs) {
    if (run.nodes.empty()) continue;
    if (before != nullptr && before->nodes != run.nodes) {
      Finding finding = LogFinding("R-SET-001", "set:nodes_changed", 0,
                                   absl::StrCat("run ", run.run, ": ", Difference(*before, run)));
      finding.expected = absl::StrCat("the nodes of run ", before->run);
      finding.severity = Severity::kWarning;
      findings.push_back(std::move(finding));
    }
    before = &run;
  }
  return findings;
}

std::vector<Finding> CheckSetMaterials(std::span<const RunNodes> runs) {
  std::vector<Finding> findings;
  const RunNodes* before = nullptr;
  for (const RunNodes& run : runs) {
    if (run.materials.empty()) continue;
    std::vector<std::string> changed;
    for (const auto& [name, sha256] : run.materials) {
      if (before == nullptr) break;
      const auto known = before->materials.find(name);
      if (known != before->materials.end() && known->second != sha256) changed.push_back(name);
    }
    if (!changed.empty()) {
      const size_t count = changed.size();
      changed.resize(std::min(count, kPlacesMax));
      Finding finding =
          LogFinding("R-SET-002", "set:materials_changed", 0,
                     absl::StrCat("run ", run.run, ": other content of ",
                                  absl::StrJoin(changed, ", "), count > kPlacesMax ? ", ..." : ""));
      finding.expected = absl::StrCat("the materials of run ", before->run);
      finding.severity = Severity::kWarning;
      findings.push_back(std::move(finding));
    }
    before = &run;
  }
  return findings;
}

}  // namespace assay::rules
