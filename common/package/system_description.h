// systems/SYSTEM.json: what a submitter says of a system (rules specification, section 4.2).

#ifndef COMMON_PACKAGE_SYSTEM_DESCRIPTION_H_
#define COMMON_PACKAGE_SYSTEM_DESCRIPTION_H_

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/rules/finding.h"

namespace assay::package {

// The 33 members that usage hpc demands, in the order of the submission rules.
std::span<const char* const> RequiredSystemMembers();

// Where a description stands; empty: not to be compared.
struct DescriptionPlace {
  std::string organization;  // the folder
  std::string system;        // the file's name without .json
};

// `text` as one part of a path that every checker accepts: no slash, blank or leading dot. The
// folder of an organisation is its name so.
std::string PathPart(absl::string_view text);

// Findings about the bytes of one file. There is an error exactly if the official checker says no
// or dies; warnings are about what it overlooks and reviewers do not.
std::vector<rules::Finding> CheckSystemDescription(absl::string_view bytes,
                                                   const DescriptionPlace& place);

}  // namespace assay::package

#endif  // COMMON_PACKAGE_SYSTEM_DESCRIPTION_H_
