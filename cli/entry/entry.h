// assay entry, assay set, assay query: entries and their run sets.

#ifndef CLI_ENTRY_ENTRY_H_
#define CLI_ENTRY_ENTRY_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> EntryCommands();
std::vector<Command> SetCommands();
std::vector<Command> QueryCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_ENTRY_H_
