// assay compare: entries or runs beside each other, differences first.

#ifndef CLI_COMPARE_H_
#define CLI_COMPARE_H_

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/print.h"

namespace assay::cli {

// One row per field that any of `resources` has: "field", and under each id what it has there, as
// text; nothing where it has no such field. Members of objects become rows of their own
// ("hyperparameters.opt_name"). Rows in which all agree are left out unless `is_all`.
Json CompareResources(const std::vector<std::string>& ids, const std::vector<Json>& resources,
                      bool is_all);

std::vector<Command> CompareCommands();

}  // namespace assay::cli

#endif  // CLI_COMPARE_H_
