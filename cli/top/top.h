// `assay top`.

#ifndef CLI_TOP_TOP_H_
#define CLI_TOP_TOP_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> TopCommands();

}  // namespace assay::cli

#endif  // CLI_TOP_TOP_H_
