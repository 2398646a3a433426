// assay admin verify: whether everything that the coordinator keeps is as it was written.

#ifndef CLI_ADMIN_VERIFY_H_
#define CLI_ADMIN_VERIFY_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> VerifyCommands();

}  // namespace assay::cli

#endif  // CLI_ADMIN_VERIFY_H_
