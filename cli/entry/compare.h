// assay compare: entries or runs beside each other, differences first.

#ifndef CLI_ENTRY_COMPARE_H_
#define CLI_ENTRY_COMPARE_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> CompareCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_COMPARE_H_
