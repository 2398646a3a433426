// assay history alias add, list, remove.

#ifndef CLI_HISTORY_HISTORY_ALIAS_H_
#define CLI_HISTORY_HISTORY_ALIAS_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> HistoryAliasCommands();

}  // namespace assay::cli

#endif  // CLI_HISTORY_HISTORY_ALIAS_H_
