// How the kernel steers the node's clock (adjtimex), and what CLOCK_MONOTONIC has gained on the
// hardware's.

#include <sys/timex.h>
#include <time.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

int64_t ClockNs(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

class ClockSource final : public TelemetrySource {
 public:
  explicit ClockSource(const SourceOptions& options) : read_(options.steering) {
    if (read_ == nullptr) return;
    columns_ = {
        {"clock.state", "state", false},  // what adjtimex returns: 0 is well, 5 unsynchronised
        {"clock.status", "bits", false},   {"clock.tick", "us", false},
        {"clock.frequency", "ppb", false}, {"clock.offset", "ns", false},
        {"clock.error", "us", false},  // at most, as the time service says
        {"clock.tai", "s", false},     // 0: not known
        {"clock.gained", "ns", false}};
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    timex steering{};
    const int state = read_(&steering);
    values[7] = ClockNs(CLOCK_MONOTONIC) - ClockNs(CLOCK_MONOTONIC_RAW);
    if (state < 0) return;
    const bool is_in_nanoseconds = (steering.status & STA_NANO) != 0;
    values[0] = state;
    values[1] = steering.status;
    values[2] = steering.tick;
    values[3] = int64_t{steering.freq} * 1000 / 65536;  // of 2^-16 ppm
    values[4] = int64_t{steering.offset} * (is_in_nanoseconds ? 1 : 1000);
    values[5] = steering.maxerror;
    values[6] = steering.tai;
  }

 private:
  const std::function<int(timex*)> read_;
  std::vector<telemetry::Column> columns_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeClockSource(const SourceOptions& options) {
  return std::make_unique<ClockSource>(options);
}

}  // namespace assay::agent
