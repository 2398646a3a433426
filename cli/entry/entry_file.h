// assay entry validate and entry diff: what a submission file says, before or beside an entry.

#ifndef CLI_ENTRY_ENTRY_FILE_H_
#define CLI_ENTRY_ENTRY_FILE_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> EntryFileCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_ENTRY_FILE_H_
