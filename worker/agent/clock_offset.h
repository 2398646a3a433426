// How far this node's wall clock is from the coordinator's, from the round trips of Synchronize.

#ifndef WORKER_AGENT_CLOCK_OFFSET_H_
#define WORKER_AGENT_CLOCK_OFFSET_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "common/clock.h"

namespace assay::agent {

// One request and its reply. Wall clocks in microseconds since 1970.
struct RoundTrip {
  int64_t send_us = 0;            // here; the request left
  int64_t server_receive_us = 0;  // there
  int64_t server_send_us = 0;     // there
  int64_t receive_us = 0;         // here; the reply came
};

struct OffsetEstimate {
  int64_t offset_us = 0;       // worker minus coordinator
  int64_t uncertainty_us = 0;  // the true value is within +- this, if no clock was set meanwhile
  bool operator==(const OffsetEstimate&) const = default;
};

// Midpoint rule (Cristian 1989; the same as one NTP exchange): exact if both ways took equally
// long, and never off by more than half the time on the wire. nullopt if the stamps contradict each
// other.
std::optional<OffsetEstimate> EstimateOffset(const RoundTrip& trip);

// Keeps the best of the recent estimates. Not thread-safe.
class ClockOffset {
 public:
  void Add(const OffsetEstimate& estimate, MonoTime now);
  // The estimate with the least uncertainty now: an old one has grown by the drift that clocks may
  // have. nullopt before the first.
  std::optional<OffsetEstimate> Best(MonoTime now) const;

 private:
  struct Sample {
    OffsetEstimate estimate;
    MonoTime at;
  };
  std::deque<Sample> samples_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_CLOCK_OFFSET_H_
