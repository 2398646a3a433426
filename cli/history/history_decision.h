// assay history mark, veto.

#ifndef CLI_HISTORY_HISTORY_DECISION_H_
#define CLI_HISTORY_HISTORY_DECISION_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> HistoryDecisionCommands();

}  // namespace assay::cli

#endif  // CLI_HISTORY_HISTORY_DECISION_H_
