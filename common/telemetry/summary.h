// What a node's telemetry amounts to over a run. Pure functions of their arguments.

#ifndef COMMON_TELEMETRY_SUMMARY_H_
#define COMMON_TELEMETRY_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/telemetry/series.h"

namespace assay::telemetry {

// One column over a time.
struct Figure {
  size_t column = 0;  // of the series
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

// The minute from `begin_ns` to `end_ns` in which others used most; of a shorter time all of it.
struct Minute {
  int64_t begin_ns = 0;
  double others = 0;  // of the node's processor time
};
std::optional<Minute> WorstMinute(const Series& series, int64_t begin_ns, int64_t end_ns);

// How many parts, at most `part_count_max`, such a time has with a sample in each.
size_t PartCountOf(int64_t begin_ns, int64_t end_ns, size_t part_count_max);

// What a column did from `begin_ns` to `end_ns`, as the means of so many equal parts; of counters
// what they grew by in a second. A part without a sample has none.
std::vector<std::optional<double>> CourseOf(const Series& series, size_t column, int64_t begin_ns,
                                            int64_t end_ns, size_t part_count);

}  // namespace assay::telemetry

#endif  // COMMON_TELEMETRY_SUMMARY_H_
