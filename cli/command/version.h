// assay version: of this program and, if one answers, of the coordinator.

#ifndef CLI_COMMAND_VERSION_H_
#define CLI_COMMAND_VERSION_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> VersionCommands();

}  // namespace assay::cli

#endif  // CLI_COMMAND_VERSION_H_
