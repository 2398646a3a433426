// assay allocation: leases of nodes, as an operator sees them.

#ifndef CLI_ALLOCATION_ALLOCATION_H_
#define CLI_ALLOCATION_ALLOCATION_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> AllocationCommands();

}  // namespace assay::cli

#endif  // CLI_ALLOCATION_ALLOCATION_H_
