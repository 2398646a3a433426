// The power folder of a result directory (rules specification, section 4.3, step 5).

#ifndef COMMON_PACKAGE_POWER_H_
#define COMMON_PACKAGE_POWER_H_

#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/package/results_tree.h"
#include "common/rules/finding.h"

namespace assay::package {

struct PowerReport {
  // Runs that count as not complying. Where folders are missing the official checker may blame
  // another run than the one with the odd count; so does this set, and the findings name both.
  std::set<std::string> failed_runs;
  bool is_fatal = false;  // the official checker dies
  std::vector<rules::Finding> findings;
};

// `runs`: the names of the result files without .txt, by path. `power`: what lies in the folder.
PowerReport CheckPower(std::span<const std::string> runs, std::span<const PowerFolder> power);

}  // namespace assay::package

#endif  // COMMON_PACKAGE_POWER_H_
