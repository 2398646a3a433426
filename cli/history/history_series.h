// assay history series, changes.

#ifndef CLI_HISTORY_HISTORY_SERIES_H_
#define CLI_HISTORY_HISTORY_SERIES_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> HistorySeriesCommands();

}  // namespace assay::cli

#endif  // CLI_HISTORY_HISTORY_SERIES_H_
