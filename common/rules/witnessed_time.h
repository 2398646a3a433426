// How long a run took by the clocks of its node and of the coordinator, beside what its log says.
// Pure functions of their arguments.

#ifndef COMMON_RULES_WITNESSED_TIME_H_
#define COMMON_RULES_WITNESSED_TIME_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/node_clock.h"
#include "common/rules/arrivals.h"
#include "common/rules/finding.h"

namespace assay::rules {

// From the last run_start before the first run_stop to that.
struct WitnessedTime {
  double node_ms = 0;   // as the records arrived on rank 0's node, by its hardware's clock
  double error_ms = 0;  // by how much the time by the log may differ from that, at most
  struct Coordinator {
    double run_ms = 0;
    double error_ms = 0;  // at most
    bool operator==(const Coordinator&) const = default;
  };
  // By its clock; none where the offset was not measured near both ends.
  std::optional<Coordinator> coordinator;
  bool operator==(const WitnessedTime&) const = default;
};

// nullopt without both records.
std::optional<WitnessedTime> TimeOf(const std::vector<Arrival>& arrivals,
                                    const std::vector<ClockSample>& samples);

// Warnings, by which no run fails.
//   R-CLK-003: the time by the log is further from the node's than `time`'s error, and 100 ms more
//   that may pass between a stamp and its writing.
//   R-CLK-004: the node's clocks stood still, or ran ahead, between two samples of the run, by more
//   than the samples' uncertainty and 600 ppm. All clocks of a machine that is paused from outside
//   stand still together, so nothing on it can see that.
std::vector<Finding> CheckTimes(const WitnessedTime& time, const std::vector<Arrival>& arrivals,
                                const std::vector<ClockSample>& samples);

}  // namespace assay::rules

#endif  // COMMON_RULES_WITNESSED_TIME_H_
