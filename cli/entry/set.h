// assay set: the runs of an entry as one thing, and how their times spread.

#ifndef CLI_ENTRY_SET_H_
#define CLI_ENTRY_SET_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> SetCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_SET_H_
