// assay run, assay logs: single runs, their logs and events.

#ifndef CLI_RUN_RUN_H_
#define CLI_RUN_RUN_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> RunCommands();
std::vector<Command> LogsCommands();

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_H_
