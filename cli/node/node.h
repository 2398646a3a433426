// assay node: the workers, as an operator sees them.

#ifndef CLI_NODE_NODE_H_
#define CLI_NODE_NODE_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> NodeCommands();

}  // namespace assay::cli

#endif  // CLI_NODE_NODE_H_
