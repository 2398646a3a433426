// How the clocks of a run's nodes are carried over to that of node 0, where rank 0 stamps the log:
// by what each node measured, while the run went on, of the coordinator's clock (docs/adr/0192,
// 0201). Pure functions of their arguments.

#ifndef COMMON_NODE_CLOCK_H_
#define COMMON_NODE_CLOCK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace assay {

// How far the node's clock was from the coordinator's at one moment.
struct ClockSample {
  std::string boot_id;    // of the coordinator's host: clocks of two boots have nothing in common
  int64_t wall_us = 0;    // the node's wall clock at that moment
  int64_t node_ns = 0;    // its hardware's clock, with the time that it was suspended
  int64_t mono_ns = 0;    // its CLOCK_MONOTONIC; 0: not known, of an agent of before
  int64_t offset_us = 0;  // node_ns minus the coordinator's monotonic clock
  int64_t uncertainty_us = 0;  // of the offset, at most
  bool operator==(const ClockSample&) const = default;
};

// The file in which `node` keeps them: offsets.jsonl of node 0, offsets_3.jsonl of node 3.
std::string ClockSamplesName(int node);
// Who reads such a file takes no more of it: anybody may have made it. Four days of a run.
inline constexpr int64_t kClockSamplesBytesMax = 8 << 20;

// One line of JSON, and back. Lines that are none, and numbers that no clock shows, are left out.
std::string ClockSampleText(const ClockSample& sample);
std::vector<ClockSample> ReadClockSamples(absl::string_view text);

// A reply that took long, on its way or because the node stood still, hides what the samples before
// and after it show: these are left out.
std::vector<ClockSample> GoodClockSamples(std::vector<ClockSample> samples);

// A moment by another clock, and how far that may be off at most.
struct CarriedTime {
  int64_t at_ns = 0;
  int64_t error_ns = 0;
  bool operator==(const CarriedTime&) const = default;
};

// run_start as the log stamps it, and what the clock of node 0 showed then.
struct LogStart {
  int64_t run_start_ms = 0;
  int64_t node_ns = 0;
};

// The clock of one node of a run. Between two samples its rate is taken to be even, and what it
// gained between them may have come at any time of it; before the first and after the last it may
// gain 600 ppm. Wall clocks, which anybody may set, are not asked.
class NodeClock {
 public:
  // Of node 0, which needs no samples for its own.
  explicit NodeClock(const LogStart& start) : start_(start) {}
  // Of another; nullopt if it and node 0 have measured no clock in common.
  static std::optional<NodeClock> Of(const LogStart& start,
                                     const std::vector<ClockSample>& node_zero,
                                     const std::vector<ClockSample>& node);

  const LogStart& start() const { return start_; }
  // When this node's clock showed `node_ns`: by the clock of node 0.
  CarriedTime AtNodeZero(int64_t node_ns) const;
  // When this node's CLOCK_MONOTONIC showed `mono_ns`: by the clock that stamps the log, since
  // 1970. nullopt: of node 0, whose wall clock that is, of an agent of before, and of what is no
  // such time.
  std::optional<CarriedTime> ByLog(int64_t mono_ns) const;

 private:
  // A moment at which two clocks were compared.
  struct Pair {
    int64_t from_ns = 0;
    int64_t to_ns = 0;
    int64_t error_ns = 0;
  };
  // In the order of both clocks.
  using Pairs = std::vector<Pair>;
  // By one boot of the coordinator's host.
  struct Bridge {
    Pairs to_coordinator;
    Pairs to_node_zero;
  };

  static void Add(const Pair& pair, Pairs* pairs);
  static CarriedTime Carry(const Pairs& pairs, int64_t from_ns);
  // By the boot of its host.
  static std::map<std::string, Pairs> ToCoordinators(const std::vector<ClockSample>& samples);

  LogStart start_;
  std::vector<Bridge> bridges_;  // none: node 0
  Pairs mono_to_node_;
};

}  // namespace assay

#endif  // COMMON_NODE_CLOCK_H_
