// assay admin verify: whether everything that the coordinator keeps is as it was written.

#ifndef CLI_VERIFY_H_
#define CLI_VERIFY_H_

#include <vector>

#include "cli/command.h"

namespace assay::cli {

std::vector<Command> VerifyCommands();

}  // namespace assay::cli

#endif  // CLI_VERIFY_H_
