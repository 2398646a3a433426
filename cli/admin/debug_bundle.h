// assay admin debug-bundle: what helps others to find out what is wrong with a coordinator.

#ifndef CLI_ADMIN_DEBUG_BUNDLE_H_
#define CLI_ADMIN_DEBUG_BUNDLE_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> DebugBundleCommands();

}  // namespace assay::cli

#endif  // CLI_ADMIN_DEBUG_BUNDLE_H_
