// How many bytes a node has moved by a moment of a run. Pure functions of their arguments.

#ifndef COMMON_TELEMETRY_BYTES_H_
#define COMMON_TELEMETRY_BYTES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/telemetry/run_phases.h"
#include "common/telemetry/series.h"

namespace assay::telemetry {

// The node's clock when its wall clock showed `wall_ms`, by what both showed as telemetry began.
int64_t NodeNsAt(const Header& header, int64_t wall_ms);

// By how much counters have grown together since the first sample.
class Growth {
 public:
  // Of the columns whose names begin with one of `prefixes` and end with `suffix`.
  Growth(const Series& series, std::span<const absl::string_view> prefixes,
         absl::string_view suffix);

  // Whether the node has such columns.
  bool has_columns() const { return has_columns_; }
  // Between two samples in proportion to time. nullopt: it was not measured around then.
  std::optional<double> At(int64_t node_ns) const;
  std::optional<double> Between(int64_t begin_ns, int64_t end_ns) const;

 private:
  bool has_columns_ = false;
  std::vector<int64_t> at_ns_;
  std::vector<std::optional<double>> grown_;
};

// What a node has read, by where it is counted. Members without a value: not known.
struct BytesRead {
  std::optional<double> run;      // by the run's processes from storage (read_bytes)
  std::optional<double> disks;    // from all of the node's disks, by whomever
  std::optional<double> servers;  // from servers of network file systems, likewise
  std::optional<double> network;  // received from other nodes of any kind, likewise

  // From storage: the run's own where they are known, else the node's; nullopt: neither is.
  std::optional<double> FromStorage() const;
};

class NodeBytes {
 public:
  // `series` must outlive it.
  explicit NodeBytes(const Series* series);

  const Header& header() const { return series_->header; }
  // By the node's clock; from the first sample on.
  BytesRead Between(int64_t begin_ns, int64_t end_ns) const;
  // Of the first sample at or after a time: what has been read by then is at least what had been at
  // that time. nullopt: there is none.
  std::optional<int64_t> SampleAfter(int64_t node_ns) const;
  int64_t first_ns() const;

 private:
  const Series* series_;
  Growth run_, disks_, servers_, network_;
};

// A part of a run, and what a node read in it.
struct PhaseBytes {
  std::string phase;  // before the clock | before epoch 1 | epoch N
  int epoch = 0;      // 0: none
  double seconds = 0;
  BytesRead read;
};

// From the first sample to run_stop, one part after the other: what an epoch evaluates at its end,
// and what it reads ahead for the next, is its own. Without run_start and run_stop nothing.
std::vector<PhaseBytes> BytesByPhase(const NodeBytes& node, const RunPhases& phases);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_BYTES_H_
