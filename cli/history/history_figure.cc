#include "cli/history/history_figure.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace assay::cli {
namespace {

constexpr int kSeriesPanelHeight = 280;

// One line for each set: number, value, low, high.
std::string SeriesRows(const analysis::Series& series, int panel) {
  const analysis::MeasureHistory& history = series.measures[0];
  std::string rows = absl::StrFormat("$panel%d << EOD\n", panel);
  for (size_t i = 0; i < series.points.size(); ++i) {
    const auto& interval = history.judgements[i].interval;
    absl::StrAppendFormat(&rows, "%d %.9g ", i + 1, series.points[i].epoch_seconds);
    if (interval)
      absl::StrAppendFormat(&rows, "%.9g %.9g\n", interval->low, interval->high);
    else
      absl::StrAppend(&rows, "NaN NaN\n");
  }
  return rows + "EOD\n";
}

std::string SeriesPanel(const analysis::Series& series, int panel) {
  std::string commands =
      absl::StrCat("unset arrow\nset title ", PlotText(TextOf(series.key)), "\n");
  for (const analysis::Change& change : series.measures[0].changes)
    absl::StrAppendFormat(
        &commands, "set arrow from %g, graph 0 to %g, graph 1 nohead lc rgb '%s' lw 1.5 dt 2\n",
        change.first + 0.5, change.first + 0.5, change.is_vetoed ? "#999999" : "#d55e00");
  absl::StrAppendFormat(&commands, "set xrange [0.5:%d.5]\n", series.points.size());
  absl::StrAppendFormat(
      &commands,
      "plot $panel%d using 1:3:4 with filledcurves fc rgb '#cfe3f1' title '99.9 %% interval', "
      "$panel%d using 1:2 with linespoints lc rgb '#0072b2' pt 7 ps 0.6 title 'seconds per "
      "epoch'\n",
      panel, panel);
  return commands;
}

}  // namespace

absl::StatusOr<Figure> SeriesFigure(std::span<const analysis::Series> series) {
  std::vector<const analysis::Series*> drawn;
  for (const analysis::Series& one : series)
    if (one.points.size() > 1) drawn.push_back(&one);
  if (drawn.empty())
    return absl::FailedPreconditionError("no series has two sets: there is nothing to draw");
  if (drawn.size() > kFigurePanelsMax)
    return absl::FailedPreconditionError(absl::StrCat("a figure shows at most ", kFigurePanelsMax,
                                                      " series, not ", drawn.size(),
                                                      ": narrow the filter"));
  const int count = static_cast<int>(drawn.size());
  std::string commands;
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&commands, SeriesRows(*drawn[static_cast<size_t>(i)], i));
  absl::StrAppend(&commands, "set multiplot layout ", count,
                  ",1\nset border 3\nset tics nomirror\nset key top left\n"
                  "set xlabel 'set, by time'\nset ylabel 'seconds per epoch'\n");
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&commands, SeriesPanel(*drawn[static_cast<size_t>(i)], i));
  absl::StrAppend(&commands, "unset multiplot\n");
  return Figure{.commands = commands, .width = 1000, .height = kSeriesPanelHeight * count};
}

}  // namespace assay::cli
