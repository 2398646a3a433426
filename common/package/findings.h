// What a package check finds: a rule, where, what was expected and found, and the remedy.

#ifndef COMMON_PACKAGE_FINDINGS_H_
#define COMMON_PACKAGE_FINDINGS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/rules/finding.h"

namespace assay::package {

// One rule about packages, the same in all rounds. Ids never change their meaning.
struct PackageRule {
  const char* id;            // "R-PKG-006"
  rules::Severity severity;  // what a violation is where nothing else is said
  const char* error_class;   // "run_count"
  const char* expected;
  const char* section;  // what states it
  const char* remedy;
};

// All of them, by id.
std::span<const PackageRule> PackageRules();

// The violation of the rule `id`, which must exist. `found` may come from a file: it is made
// printable. `expected` replaces the rule's own text where it is not empty.
rules::Finding Violation(absl::string_view id, absl::string_view found,
                         absl::string_view expected = "");

// A finding and the file or folder it is about: ORG/..., printable.
struct PackageFinding {
  std::string path;
  rules::Finding finding;
};

int CountErrors(std::span<const PackageFinding> findings);

}  // namespace assay::package

#endif  // COMMON_PACKAGE_FINDINGS_H_
