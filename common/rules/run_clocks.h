// The clocks of a run's nodes, from the files that these have left.

#ifndef COMMON_RULES_RUN_CLOCKS_H_
#define COMMON_RULES_RUN_CLOCKS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/node_clock.h"
#include "common/rules/arrivals.h"

namespace assay::rules {

inline constexpr char kArrivalsName[] = "arrivals.jsonl";

// Where run_start is on the clock of node 0: the last arrival of that record, less what had passed
// since its stamp. A stamp that is wrong by more than a second is not believed: the arrival stands
// for it. nullopt: no such record came.
std::optional<LogStart> LogStartOf(int64_t run_start_ms, const std::vector<Arrival>& arrivals);

// Not thread-safe.
class RunClocks {
 public:
  // The text of a file of the run; nullopt if there is none, or one of more than
  // kClockSamplesBytesMax.
  using ReadFile = std::function<std::optional<std::string>(const std::string& name)>;

  // Of a run whose log says that it began at `run_start_ms`; nullopt: it does not.
  RunClocks(std::optional<int64_t> run_start_ms, ReadFile read);

  // nullopt: what is needed was not measured, or left.
  std::optional<NodeClock> Of(int node) const;

 private:
  const ReadFile read_;
  std::optional<LogStart> start_;
  std::vector<ClockSample> node_zero_;
};

}  // namespace assay::rules

#endif  // COMMON_RULES_RUN_CLOCKS_H_
