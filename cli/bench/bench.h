// assay bench: what this host can do, measured by the programs that train and check.

#ifndef CLI_BENCH_BENCH_H_
#define CLI_BENCH_BENCH_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> BenchCommands();

}  // namespace assay::cli

#endif  // CLI_BENCH_BENCH_H_
