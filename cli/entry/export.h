// assay entry export: an entry as the package that MLPerf asks for.

#ifndef CLI_ENTRY_EXPORT_H_
#define CLI_ENTRY_EXPORT_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> ExportCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_EXPORT_H_
