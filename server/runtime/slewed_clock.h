// The coordinator's time: that of the wall clock, but never faster or slower than the monotonic one
// by more than a tenth. A wall clock that is set forward must not make every worker look silent.

#ifndef SERVER_RUNTIME_SLEWED_CLOCK_H_
#define SERVER_RUNTIME_SLEWED_CLOCK_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

#include "common/clock.h"

namespace assay::runtime {

// Not thread-safe.
class SlewedClock {
 public:
  // Starts with the wall clock. `clock` must outlive this.
  explicit SlewedClock(const Clock* clock)
      : clock_(*clock), last_mono_(clock->Mono()), last_us_(absl::ToUnixMicros(clock->Wall())) {}

  int64_t NowUs() {
    constexpr int64_t kSlewDivisor = 10;
    const MonoTime mono = clock_.Mono();
    const int64_t elapsed_us = absl::ToInt64Microseconds(mono - last_mono_);
    const int64_t slack_us = elapsed_us / kSlewDivisor;
    const int64_t steady_us = last_us_ + elapsed_us;
    last_mono_ = mono;
    last_us_ =
        std::clamp(absl::ToUnixMicros(clock_.Wall()), steady_us - slack_us, steady_us + slack_us);
    return last_us_;
  }

  // What NowUs said last.
  int64_t last_us() const { return last_us_; }

 private:
  const Clock& clock_;
  MonoTime last_mono_;
  int64_t last_us_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_SLEWED_CLOCK_H_
