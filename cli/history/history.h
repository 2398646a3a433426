// Questions to the history: is a set what those before it let expect, and where has the level
// changed; what people say of that; results over rounds; names that mean the same.

#ifndef CLI_HISTORY_HISTORY_H_
#define CLI_HISTORY_HISTORY_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> HistoryCommands();

}  // namespace assay::cli

#endif  // CLI_HISTORY_HISTORY_H_
