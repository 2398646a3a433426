#include "worker/agent/clock_offset.h"

#include <algorithm>

namespace assay::agent {
namespace {

constexpr size_t kSampleCountMax = 16;
// Two free-running quartz clocks of servers: 20 ppm each is usual, 50 ppm together is generous.
constexpr int64_t kDriftUsPerSecond = 50;

}  // namespace

std::optional<OffsetEstimate> EstimateOffset(const RoundTrip& trip) {
  const int64_t there_us = trip.server_send_us - trip.server_receive_us;
  const int64_t wire_us = (trip.receive_us - trip.send_us) - there_us;
  if (there_us < 0 || wire_us < 0) return std::nullopt;
  OffsetEstimate estimate;
  estimate.offset_us =
      ((trip.send_us - trip.server_receive_us) + (trip.receive_us - trip.server_send_us)) / 2;
  // While the coordinator held the call, both clocks drifted.
  estimate.uncertainty_us = (wire_us + 1) / 2 + there_us * kDriftUsPerSecond / 1'000'000 + 1;
  return estimate;
}

void ClockOffset::Add(const OffsetEstimate& estimate, MonoTime now) {
  samples_.push_back({estimate, now});
  if (samples_.size() > kSampleCountMax) samples_.pop_front();
}

std::optional<OffsetEstimate> ClockOffset::Best(MonoTime now) const {
  std::optional<OffsetEstimate> best;
  for (const Sample& sample : samples_) {
    OffsetEstimate aged = sample.estimate;
    aged.uncertainty_us += absl::ToInt64Seconds(now - sample.at) * kDriftUsPerSecond;
    if (!best.has_value() || aged.uncertainty_us < best->uncertainty_us) best = aged;
  }
  return best;
}

}  // namespace assay::agent
