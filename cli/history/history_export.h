// assay history export.

#ifndef CLI_HISTORY_HISTORY_EXPORT_H_
#define CLI_HISTORY_HISTORY_EXPORT_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> HistoryExportCommands();

}  // namespace assay::cli

#endif  // CLI_HISTORY_HISTORY_EXPORT_H_
