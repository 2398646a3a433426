#include "cli/history/history.h"

#include <iterator>

#include "cli/history/history_alias.h"
#include "cli/history/history_decision.h"
#include "cli/history/history_export.h"
#include "cli/history/history_series.h"
#include "cli/history/history_trend.h"
#include "cli/history/history_view.h"

namespace assay::cli {

std::vector<Command> HistoryCommands() {
  std::vector<Command> commands;
  for (std::vector<Command> (*rows)() :
       {HistorySeriesCommands, HistoryDecisionCommands, HistoryTrendCommands, HistoryAliasCommands,
        HistoryExportCommands, HistoryViewCommands}) {
    std::vector<Command> more = rows();
    commands.insert(commands.end(), std::make_move_iterator(more.begin()),
                    std::make_move_iterator(more.end()));
  }
  return commands;
}

}  // namespace assay::cli
