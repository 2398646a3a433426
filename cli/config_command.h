// assay config: settings and where they came from.

#ifndef CLI_CONFIG_COMMAND_H_
#define CLI_CONFIG_COMMAND_H_

#include <vector>

#include "cli/command.h"

namespace assay::cli {

std::vector<Command> ConfigCommands();

}  // namespace assay::cli

#endif  // CLI_CONFIG_COMMAND_H_
