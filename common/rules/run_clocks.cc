#include "common/rules/run_clocks.h"

#include <cmath>
#include <utility>

namespace assay::rules {
namespace {

// In a year far from now; as nanoseconds still a number.
constexpr int64_t kWallMsMax = 3'000'000'000'000;
constexpr int64_t kNsPerUs = 1000;
constexpr int64_t kUsPerMs = 1000;
constexpr int64_t kClockNsMax = int64_t{1} << 59;

bool IsSane(const Arrival& arrival) {
  for (const int64_t at_ns : {arrival.mono_ns, arrival.raw_ns, arrival.boot_ns})
    if (at_ns < 0 || at_ns > kClockNsMax) return false;
  return arrival.wall_us >= 0 && arrival.wall_us <= kWallMsMax * kUsPerMs;
}

}  // namespace

std::optional<LogStart> LogStartOf(int64_t run_start_ms, const std::vector<Arrival>& arrivals) {
  if (run_start_ms < 0 || run_start_ms > kWallMsMax) return std::nullopt;
  std::optional<LogStart> start;
  for (const Arrival& arrival : arrivals) {
    if (arrival.record.key != "run_start" || !IsSane(arrival) ||
        std::floor(arrival.record.time_ms) != static_cast<double>(run_start_ms))
      continue;
    const int64_t passed_us = arrival.wall_us - run_start_ms * kUsPerMs;
    const bool is_right =
        passed_us >= -kFutureToleranceMs * kUsPerMs && passed_us <= kLateWarningMs * kUsPerMs;
    start = LogStart{run_start_ms, arrival.NodeNs() - (is_right ? passed_us * kNsPerUs : 0)};
  }
  return start;
}

RunClocks::RunClocks(std::optional<int64_t> run_start_ms, ReadFile read) : read_(std::move(read)) {
  if (!run_start_ms.has_value()) return;
  start_ = LogStartOf(*run_start_ms, ReadArrivals(read_(kArrivalsName).value_or("")));
  if (start_.has_value()) node_zero_ = ReadClockSamples(read_(ClockSamplesName(0)).value_or(""));
}

std::optional<NodeClock> RunClocks::Of(int node) const {
  if (!start_.has_value()) return std::nullopt;
  if (node == 0) return NodeClock(*start_);
  if (node_zero_.empty()) return std::nullopt;
  return NodeClock::Of(*start_, node_zero_,
                       ReadClockSamples(read_(ClockSamplesName(node)).value_or("")));
}

}  // namespace assay::rules
