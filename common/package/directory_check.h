// The check of one result directory, as a part of the package check (package_check.h).

#ifndef COMMON_PACKAGE_DIRECTORY_CHECK_H_
#define COMMON_PACKAGE_DIRECTORY_CHECK_H_

#include <string>

#include "common/package/checker_params.h"
#include "common/package/package_check.h"
#include "common/package/tree_reader.h"
#include "common/rules/ruleset.h"

namespace assay::package {

// package_checker_params in the folder `path`, called `label` in findings, which are appended.
// Without bypasses if there is none.
CheckerParams ReadParams(const TreeReader& tree, const std::string& path, const std::string& label,
                         std::vector<PackageFinding>* findings);

struct DirectoryPlace {
  std::string path;           // on disk
  std::string label;          // ORG/results/..., printable
  std::string system;         // folder names as they are
  std::string scaling;        //
  std::string benchmark;      //
  std::string division;       // closed or open by the system's description
  bool bypasses_rcp = false;  // asked for by an option or by the system's parameters
  bool bypasses_seeds = false;
};

DirectoryReport CheckDirectory(const TreeReader& tree, const rules::RuleSet& rules,
                               const DirectoryPlace& place);

}  // namespace assay::package

#endif  // COMMON_PACKAGE_DIRECTORY_CHECK_H_
