// What a node's telemetry amounts to over a run. Pure functions of their arguments.

#ifndef COMMON_TELEMETRY_SUMMARY_H_
#define COMMON_TELEMETRY_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/telemetry/series.h"

namespace assay::telemetry {

// One column over a time.
struct Figure {
  std::string name;
  std::string unit;
  bool is_counter = false;
  double mean = 0;              // of a counter: what it grew by in a second
  double highest = 0;           // of a counter: in a second, between two samples
  std::optional<double> total;  // of a counter: what it grew by
};

// Of the samples from `begin_ns` to `end_ns` by the node's clock; of all, where these are fewer
// than two. Columns without two values have no figure.
std::vector<Figure> Summarize(const Series& series, int64_t begin_ns, int64_t end_ns);

// The share of the node's processor time that others than the run's processes used, and that a host
// of this virtual machine took for itself; 1 is all processors. None where the node does not tell.
struct Quiet {
  std::optional<double> others;
  std::optional<double> stolen;
};
Quiet QuietOf(const std::vector<Figure>& figures);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_SUMMARY_H_
