// assay query: the history by filters.

#ifndef CLI_ENTRY_QUERY_H_
#define CLI_ENTRY_QUERY_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> QueryCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_QUERY_H_
