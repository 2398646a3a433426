// assay config: settings and where they came from.

#ifndef CLI_COMMAND_CONFIG_COMMAND_H_
#define CLI_COMMAND_CONFIG_COMMAND_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> ConfigCommands();

}  // namespace assay::cli

#endif  // CLI_COMMAND_CONFIG_COMMAND_H_
