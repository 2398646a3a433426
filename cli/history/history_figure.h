// Series as a figure, for plot.h.

#ifndef CLI_HISTORY_HISTORY_FIGURE_H_
#define CLI_HISTORY_HISTORY_FIGURE_H_

#include <span>

#include "absl/status/statusor.h"

#include "cli/terminal/plot.h"
#include "common/analysis/series.h"

namespace assay::cli {

// Seconds per epoch of each set over time, one panel for each series, with what was to be expected
// as a band, and changes as lines. FAILED_PRECONDITION if there is no series of two sets, or there
// are more than kFigurePanelsMax of them.
absl::StatusOr<Figure> SeriesFigure(std::span<const analysis::Series> series);

inline constexpr int kFigurePanelsMax = 12;

}  // namespace assay::cli

#endif  // CLI_HISTORY_HISTORY_FIGURE_H_
