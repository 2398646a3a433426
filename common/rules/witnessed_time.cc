#include "common/rules/witnessed_time.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "common/rules/log_rules.h"

namespace assay::rules {
namespace {

constexpr double kTruncationMs = 2;  // of the two stamps, which are whole milliseconds
constexpr double kLateMinMs = 6;     // the largest lag of an undisturbed follower was 5.5 ms
constexpr double kQuartzRate = 100e-6;
constexpr double kSlewRateMax = 600e-6;
constexpr double kStampToWriteMs = 100;
// A sample further from an end of the run than this says too little of it.
constexpr int64_t kSampleReachNs = 30'000'000'000;

struct Ends {
  const Arrival* start = nullptr;
  const Arrival* stop = nullptr;
};

Ends EndsOf(const std::vector<Arrival>& arrivals) {
  Ends ends;
  for (const Arrival& arrival : arrivals) {
    if (arrival.record.key == "run_start") ends.start = &arrival;
    if (arrival.record.key != "run_stop" || ends.start == nullptr) continue;
    ends.stop = &arrival;
    break;
  }
  return ends;
}

double Milliseconds(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

// Of the samples in reach the one that says most about the moment; null if there is none.
struct Nearest {
  const ClockSample* sample = nullptr;
  double uncertainty_ms = 0;
};

Nearest NearestTo(int64_t node_ns, const std::vector<ClockSample>& samples) {
  Nearest nearest;
  for (const ClockSample& sample : samples) {
    const int64_t away_ns = std::abs(sample.node_ns - node_ns);
    if (away_ns > kSampleReachNs) continue;
    const double uncertainty_ms =
        static_cast<double>(sample.uncertainty_us) / 1e3 + Milliseconds(away_ns) * kQuartzRate;
    if (nearest.sample == nullptr || uncertainty_ms < nearest.uncertainty_ms)
      nearest = {&sample, uncertainty_ms};
  }
  return nearest;
}

std::string TimeText(int64_t wall_us) {
  return absl::FormatTime("%H:%M:%E3SZ", absl::FromUnixMicros(wall_us), absl::UTCTimeZone());
}

Finding Warning(absl::string_view rule, int64_t line, std::string found) {
  Finding finding = LogFinding(rule, "clock:node", line, std::move(found));
  finding.severity = Severity::kWarning;
  return finding;
}

}  // namespace

std::optional<WitnessedTime> TimeOf(const std::vector<Arrival>& arrivals,
                                    const std::vector<ClockSample>& samples) {
  const Ends ends = EndsOf(arrivals);
  if (ends.stop == nullptr) return std::nullopt;
  const double late_ms =
      std::max(kLateMinMs, Milliseconds(std::max(ends.start->late_ns, ends.stop->late_ns)));
  WitnessedTime time{.node_ms = Milliseconds(ends.stop->NodeNs() - ends.start->NodeNs())};
  double drift_ms = std::fabs(time.node_ms) * kQuartzRate;
  const Nearest begin = NearestTo(ends.start->NodeNs(), samples);
  const Nearest end = NearestTo(ends.stop->NodeNs(), samples);
  const bool is_measured = begin.sample != nullptr && end.sample != nullptr &&
                           begin.sample != end.sample &&
                           begin.sample->boot_id == end.sample->boot_id;
  if (is_measured) {
    const double gained_ms =
        static_cast<double>(end.sample->offset_us - begin.sample->offset_us) / 1e3;
    const double doubt_ms = begin.uncertainty_ms + end.uncertainty_ms;
    drift_ms = std::fabs(gained_ms) + doubt_ms;
    time.coordinator = {.run_ms = time.node_ms - gained_ms, .error_ms = doubt_ms + late_ms};
  }
  time.error_ms = kTruncationMs + late_ms + drift_ms;
  return time;
}

std::vector<Finding> CheckTimes(const WitnessedTime& time, const std::vector<Arrival>& arrivals,
                                const std::vector<ClockSample>& samples) {
  std::vector<Finding> findings;
  const Ends ends = EndsOf(arrivals);
  if (ends.stop == nullptr) return findings;
  const double logged_ms = ends.stop->record.time_ms - ends.start->record.time_ms;
  const double apart_ms = logged_ms - time.node_ms;
  if (std::fabs(apart_ms) > time.error_ms + kStampToWriteMs)
    findings.push_back(Warning(
        "R-CLK-003", ends.stop->record.line,
        absl::StrFormat("%.3f s by the log and %.3f s by the clock of the node, which differ by "
                        "more than the %.3f s that these may be off",
                        logged_ms / 1e3, time.node_ms / 1e3, time.error_ms / 1e3)));
  const std::vector<ClockSample> good = GoodClockSamples(samples);
  for (size_t i = 1; i < good.size(); ++i) {
    const ClockSample& from = good[i - 1];
    const ClockSample& to = good[i];
    if (from.boot_id != to.boot_id || to.node_ns < ends.start->NodeNs() ||
        from.node_ns > ends.stop->NodeNs())
      continue;
    const double gained_ms = static_cast<double>(to.offset_us - from.offset_us) / 1e3;
    const double allowed_ms = static_cast<double>(from.uncertainty_us + to.uncertainty_us) / 1e3 +
                              Milliseconds(to.node_ns - from.node_ns) * kSlewRateMax;
    if (std::fabs(gained_ms) <= allowed_ms) continue;
    findings.push_back(Warning(
        "R-CLK-004", 0,
        absl::StrFormat("the node's clocks %s %.3f s between %s and %s, by the coordinator's",
                        gained_ms < 0 ? "stood still for" : "ran ahead by",
                        std::fabs(gained_ms) / 1e3, TimeText(from.wall_us), TimeText(to.wall_us))));
  }
  return findings;
}

}  // namespace assay::rules
