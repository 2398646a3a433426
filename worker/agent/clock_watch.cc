#include "worker/agent/clock_watch.h"

#include <time.h>

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace assay::agent {
namespace {

constexpr int kTries = 5;
constexpr int64_t kWindowNs = 10'000'000'000;    // between comparisons, so that each tells much
constexpr int64_t kWindowMinNs = 1'000'000'000;  // below it reading the clocks says too little
constexpr int64_t kStepMinNs = 1'000'000;
// ntpd and the kernel slew by 500 ppm at most. chrony may do more for a large offset, and then the
// time of a run is as wrong as if somebody had wished it.
constexpr double kRateErrorMax = 600e-6;

std::string TimeText(int64_t wall_ns) {
  return absl::FormatTime("%H:%M:%E3SZ", absl::FromUnixNanos(wall_ns), absl::UTCTimeZone());
}

}  // namespace

int64_t ReadClockNs(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return absl::ToUnixNanos(absl::TimeFromTimespec(time));
}

ClockReading ReadClocks() {
  ClockReading best;
  int64_t best_width_ns = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kTries; ++i) {
    const int64_t before_ns = ReadClockNs(CLOCK_MONOTONIC_RAW);
    const ClockReading reading{.wall_ns = ReadClockNs(CLOCK_REALTIME),
                               .mono_ns = ReadClockNs(CLOCK_MONOTONIC),
                               .boot_ns = ReadClockNs(CLOCK_BOOTTIME)};
    const int64_t width_ns = ReadClockNs(CLOCK_MONOTONIC_RAW) - before_ns;
    if (width_ns >= best_width_ns) continue;
    best_width_ns = width_ns;
    best = reading;
    best.raw_ns = before_ns + width_ns / 2;
  }
  return best;
}

ClockWatch::ClockWatch(std::function<ClockReading()> read)
    : read_(std::move(read)), last_(read_()) {}

void ClockWatch::Compare(const ClockReading& now) {
  const int64_t raw_ns = now.raw_ns - last_.raw_ns;
  const int64_t mono_ns = now.mono_ns - last_.mono_ns;
  const int64_t step_ns = (now.wall_ns - last_.wall_ns) - mono_ns;
  const std::string when =
      absl::StrCat("between ", TimeText(last_.wall_ns), " and ", TimeText(now.wall_ns));
  if (std::abs(step_ns) > kStepMinNs)
    faults_.push_back({"R-CLK-001", absl::StrFormat("the wall clock was set by %+.3f s %s",
                                                    static_cast<double>(step_ns) * 1e-9, when)});
  const double rate = static_cast<double>(mono_ns) / static_cast<double>(raw_ns);
  if (std::abs(rate - 1) > kRateErrorMax)
    faults_.push_back(
        {"R-CLK-002",
         absl::StrFormat("the monotonic clock ran at %.4f of the hardware's %s", rate, when)});
}

bool ClockWatch::Look(bool is_final) {
  const ClockReading now = read_();
  const int64_t passed_ns = now.raw_ns - last_.raw_ns;
  if (passed_ns < (is_final ? kWindowMinNs : kWindowNs)) return false;
  const size_t count = faults_.size();
  if (count < kNodeFaultsMax) Compare(now);
  last_ = now;
  return faults_.size() > count;
}

}  // namespace assay::agent
