// package_checker_params: how a submitter asks for a check to be bypassed (rules specification,
// section 4.3).

#ifndef COMMON_PACKAGE_CHECKER_PARAMS_H_
#define COMMON_PACKAGE_CHECKER_PARAMS_H_

#include <vector>

#include "absl/strings/string_view.h"

#include "common/rules/finding.h"

namespace assay::package {

struct CheckerParams {
  bool bypasses_rcp = false;
  bool bypasses_seeds = false;
  std::vector<rules::Finding> findings;  // lines without effect; an error if it is not UTF-8
};

// As the official checker reads it: a line counts if it is exactly rcp-bypass or
// seed-checker-bypass and has no line end, so only the last line can.
CheckerParams ParseCheckerParams(absl::string_view bytes);

}  // namespace assay::package

#endif  // COMMON_PACKAGE_CHECKER_PARAMS_H_
