// Which checks of nodes an operator wants before the runs of a set.

#ifndef SERVER_PREFLIGHT_CONFIG_H_
#define SERVER_PREFLIGHT_CONFIG_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "assay/v1/config.pb.h"

#include "server/core/preflight.h"

namespace assay {

// What is wrong with it, one sentence each, which begin with `field`.
std::vector<std::string> PreflightProblems(const v1::PreflightConfig& config,
                                           absl::string_view field);

// All checks with their policies, those of the configuration in place of the usual ones.
core::PreflightPolicy PreflightPolicyOf(const v1::PreflightConfig& config);

}  // namespace assay

#endif  // SERVER_PREFLIGHT_CONFIG_H_
