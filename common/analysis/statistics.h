// Mean and spread of what a set of runs measured, and which runs of the set count.

#ifndef COMMON_ANALYSIS_STATISTICS_H_
#define COMMON_ANALYSIS_STATISTICS_H_

#include <optional>
#include <span>
#include <vector>

namespace assay::analysis {

struct Moments {
  double mean = 0;
  std::optional<double> sd;  // of the sample (n - 1); none for a single value
  int count = 0;
};

// nullopt for no values.
std::optional<Moments> MomentsOf(std::span<const double> values);

// Positions of the runs that remain, by time, without the fastest and the slowest: only the wall
// clock ranks them, and a run without an end is the slowest. This is the selection behind every
// standard deviation, Table 5 and most of Table 6 of the MLPerf HPC paper; its mean times follow
// the scoring rule instead (rules::Score). Of fewer than three runs all that ended remain. Runs
// without an end never remain.
std::vector<int> MiddleRuns(std::span<const std::optional<double>> run_s);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_STATISTICS_H_
