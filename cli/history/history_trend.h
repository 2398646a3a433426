// assay history trend.

#ifndef CLI_HISTORY_HISTORY_TREND_H_
#define CLI_HISTORY_HISTORY_TREND_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> HistoryTrendCommands();

}  // namespace assay::cli

#endif  // CLI_HISTORY_HISTORY_TREND_H_
