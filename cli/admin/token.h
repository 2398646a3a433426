// assay admin token and enrol: who may do what.

#ifndef CLI_ADMIN_TOKEN_H_
#define CLI_ADMIN_TOKEN_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> TokenCommands();

}  // namespace assay::cli

#endif  // CLI_ADMIN_TOKEN_H_
