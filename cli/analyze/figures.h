// The paper's figures of a set of entries, for plot.h.

#ifndef CLI_ANALYZE_FIGURES_H_
#define CLI_ANALYZE_FIGURES_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"

#include "cli/terminal/plot.h"
#include "common/analysis/entry.h"

namespace assay::cli {

inline constexpr double kHundredPercent = 100;  // in one

// Figure 1: each entry's time to solution as a bar of its phases. FAILED_PRECONDITION if no entry
// has times.
absl::StatusOr<Figure> BreakdownFigure(std::span<const analysis::Characteristics> entries);

// Figure 2: parameters, epoch scaling, throughput scaling and compute time, with shared axes.
// INVALID_ARGUMENT if the entries are of several benchmarks, FAILED_PRECONDITION if none of them
// says all that the figure shows.
absl::StatusOr<Figure> ScalingFigure(std::span<const analysis::Characteristics> entries);

// What figures and tables call an entry: the paper's name if it has one.
std::string EntryLabel(const analysis::Entry& entry);

}  // namespace assay::cli

#endif  // CLI_ANALYZE_FIGURES_H_
