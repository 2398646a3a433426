// assay dev and assay quickstart: a whole system on this host, and a first scored benchmark.

#ifndef CLI_COORDINATOR_DEV_H_
#define CLI_COORDINATOR_DEV_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> DevCommands();
std::vector<Command> QuickstartCommands();

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_DEV_H_
