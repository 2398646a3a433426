// assay history view.

#ifndef CLI_HISTORY_HISTORY_VIEW_H_
#define CLI_HISTORY_HISTORY_VIEW_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> HistoryViewCommands();

}  // namespace assay::cli

#endif  // CLI_HISTORY_HISTORY_VIEW_H_
