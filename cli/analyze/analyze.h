// assay analyze: the analysis of the MLPerf HPC paper as commands.

#ifndef CLI_ANALYZE_ANALYZE_H_
#define CLI_ANALYZE_ANALYZE_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> AnalyzeCommands();

}  // namespace assay::cli

#endif  // CLI_ANALYZE_ANALYZE_H_
