// assay admin prune: removes what the coordinator's configuration lets go.

#ifndef CLI_ADMIN_PRUNE_H_
#define CLI_ADMIN_PRUNE_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> StorePruneCommands();

}  // namespace assay::cli

#endif  // CLI_ADMIN_PRUNE_H_
