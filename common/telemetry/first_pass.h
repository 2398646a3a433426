// Whether the first pass over the training data came from storage: what was read of it, by all
// nodes, from the reset of their caches to the end of epoch 1. Pure functions of their arguments.
//
// Whatever is not known makes the whole unknown, and counters of a whole node count others' reads
// too: so a pass may look fuller than it was, never emptier. Later epochs may come from memory.

#ifndef COMMON_TELEMETRY_FIRST_PASS_H_
#define COMMON_TELEMETRY_FIRST_PASS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/telemetry/run_phases.h"
#include "common/telemetry/series.h"

namespace assay::telemetry {

// Of what has to come from storage, a pass may lack this share.
inline constexpr double kFirstPassSlack = 0.02;

// What a node read until the end of epoch 1.
struct NodePass {
  int node = 0;
  std::string unknown;                // why that is not known; empty: it is
  std::optional<double> train_bytes;  // the files to train on, as this node found them
  double storage_bytes = 0;
  double network_bytes = 0;
  bool is_cold_proven = false;
};

// Of `node`, by its telemetry (null: it has left none) and its record of the reset (caches_N.json).
NodePass NodePassOf(int node, const RunPhases& phases, const Series* series,
                    absl::string_view caches);

struct FirstPass {
  std::string unknown;          // why nothing is known; empty: the following is
  double needed_bytes = 0;      // the files that the nodes train on, each once
  double storage_bytes = 0;     // read by all nodes
  double declared_bytes = 0;    // from caches of nodes, which the log declares
  double network_bytes = 0;     // received by all nodes meanwhile
  bool is_cold_proven = false;  // on every node

  // From storage, of what is needed; nullopt where it is not known.
  std::optional<double> Share() const;
  // More is missing than the slack.
  bool IsShort() const;
  // Nothing that a round allows can have brought what is missing.
  bool IsUnexplained() const;
  // "12 MB of 1.2 GB of training data came from storage ...": what a finding says of it.
  std::string Sentence() const;
};

// `nodes`: one for each node of the run, of `node_count`. `train_samples`: of the dataset; a log
// that trains on fewer needs that share of it. Where nodes found different sizes, the smallest
// counts.
FirstPass FirstPassOf(const RunPhases& phases, std::span<const NodePass> nodes, int node_count,
                      std::optional<int64_t> train_samples);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_FIRST_PASS_H_
