// The repo check (rules specification, section 4.6): whether the repository of results will take a
// package's files, whatever is in them.

#ifndef COMMON_PACKAGE_REPOSITORY_H_
#define COMMON_PACKAGE_REPOSITORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/package/findings.h"
#include "common/package/tree_reader.h"

namespace assay::package {

inline constexpr int64_t kRepositoryFileBytesMax = int64_t{50} << 20;

struct RepositoryReport {
  bool are_names_ok = true;
  bool are_sizes_ok = true;
  bool are_links_ok = true;
  int64_t file_count = 0;
  std::vector<PackageFinding> findings;  // warnings: the package check is another one

  bool pass() const { return are_names_ok && are_sizes_ok && are_links_ok; }
};

// Walks over `path` and all below it; `label` is what `path` is called in findings. Links are
// looked at, not followed. Of one kind of finding at most a few dozen are listed.
RepositoryReport CheckRepository(const TreeReader& tree, const std::string& path,
                                 const std::string& label);

}  // namespace assay::package

#endif  // COMMON_PACKAGE_REPOSITORY_H_
