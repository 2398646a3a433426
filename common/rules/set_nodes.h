// Whether the runs of a set used the same nodes, in the same order, and the same materials.

#ifndef COMMON_RULES_SET_NODES_H_
#define COMMON_RULES_SET_NODES_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/rules/finding.h"

namespace assay::rules {

// A run that counts, and its nodes in rank order.
struct RunNodes {
  std::string run;  // r-901
  std::vector<std::string> nodes;
  std::map<std::string, std::string> materials{};  // digests of bills of materials, by file name
};

// R-SET-001, a warning for each run whose nodes are not those of the run before it. `runs`: in the
// order in which they ran; those without nodes, as of imported entries, say nothing.
std::vector<Finding> CheckSetNodes(std::span<const RunNodes> runs);

// R-SET-002, a warning for each run whose bill of materials is not that of the run before it.
std::vector<Finding> CheckSetMaterials(std::span<const RunNodes> runs);

}  // namespace assay::rules

#endif  // COMMON_RULES_SET_NODES_H_
