// assay admin backup, restore, usage: copies of everything that the coordinator keeps, and its
// size.

#ifndef CLI_ADMIN_BACKUP_H_
#define CLI_ADMIN_BACKUP_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> BackupCommands();

}  // namespace assay::cli

#endif  // CLI_ADMIN_BACKUP_H_
