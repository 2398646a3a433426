// assay rules check: log files judged without a coordinator, for people and for programs.

#ifndef CLI_RULES_RULES_CHECK_H_
#define CLI_RULES_RULES_CHECK_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> RulesCheckCommands();

}  // namespace assay::cli

#endif  // CLI_RULES_RULES_CHECK_H_
