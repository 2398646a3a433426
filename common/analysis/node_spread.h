// How much of the spread of run times goes with the nodes that ran, and how much with the position
// of a run in its set.
//
// The measure is seconds per epoch, which a run's luck in converging does not enter. Only sets that
// may be compared belong into one report: of the same benchmark, round, system and batch size.

#ifndef COMMON_ANALYSIS_NODE_SPREAD_H_
#define COMMON_ANALYSIS_NODE_SPREAD_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/analysis/statistics.h"

namespace assay::analysis {

// A run that has a time to solution.
struct PlacedRun {
  std::string set;                 // s-42
  std::vector<std::string> nodes;  // in rank order
  int64_t start_ms = 0;            // run_start; orders the runs of a set
  double run_s = 0;                // run_stop - run_start
  double epochs = 0;               // positive
};

// Of the runs that share something, seconds per epoch as a ratio: 1 is the median.
struct SpreadRow {
  std::string name;  // of the node; "1", "2", ... of the position
  Moments ratio;
  double ratio_min = 0;
  double ratio_max = 0;
};

struct SpreadReport {
  int set_count = 0;
  int run_count = 0;
  double epoch_s_median = 0;  // of all runs
  Moments epoch_s;
  // To the median of all runs, for each node over the runs in whose gang it was, the slowest first.
  // A gang is as slow as its slowest node, so nodes that always run together cannot be told apart.
  std::vector<SpreadRow> by_node;
  // To the median of the run's own set, so that sets on different nodes can be laid over each
  // other.
  std::vector<SpreadRow> by_position;
};

// Sets of one run have no position to speak of and count for nodes alone. Runs without a positive
// time or number of epochs are left out.
SpreadReport SpreadOf(std::span<const PlacedRun> runs);

}  // namespace assay::analysis

#endif  // COMMON_ANALYSIS_NODE_SPREAD_H_
