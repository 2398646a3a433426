// A verdict on an organisation's package in the words that the official package checker and ours
// have in common, so that they can be compared. As sets, because the order follows the file system.

#ifndef TESTS_PACKAGE_PACKAGE_VERDICT_H_
#define TESTS_PACKAGE_PACKAGE_VERDICT_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/package/package_check.h"

namespace assay::package {

// What is said of one directory: "run_count", "10 fail", "1 forgiven", "seeds", "RCP found: pass".
using Statements = std::set<std::string>;

struct OrganizationVerdict {
  bool pass = false;
  int descriptions_passed = 0;
  std::map<std::string, Statements> directories;  // by path
  std::map<std::string, int> runs;                // by path
};

// What the official checker printed, by organisation; the output for each is headed "### ORG: NAME
// ".
std::map<std::string, OrganizationVerdict> ReadOfficial(absl::string_view text);

// What we say of an organisation of `repository`.
OrganizationVerdict VerdictOf(const OrganizationReport& report, const std::string& repository);

std::vector<std::string> NamesIn(const std::string& path);

}  // namespace assay::package

#endif  // TESTS_PACKAGE_PACKAGE_VERDICT_H_
