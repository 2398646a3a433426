// How long to wait after a failed call: the one place that says so.

#ifndef WORKER_AGENT_BACK_OFF_H_
#define WORKER_AGENT_BACK_OFF_H_

#include <algorithm>
#include <random>

#include "absl/time/time.h"

namespace assay::agent {

inline constexpr absl::Duration kBackOffFirst = absl::Milliseconds(100);
inline constexpr absl::Duration kBackOffMax = absl::Seconds(5);

// After `failure_count` failures in a row (1 or more): doubles from kBackOffFirst up to
// kBackOffMax. `share` in [0, 1) spreads a fleet that lost its coordinator at one moment: the
// result lies between half of that and all of it.
inline absl::Duration BackOff(int failure_count, double share) {
  constexpr int kDoublingsMax = 10;
  const int doublings = std::clamp(failure_count - 1, 0, kDoublingsMax);
  const absl::Duration full = std::min(kBackOffFirst * (1 << doublings), kBackOffMax);
  return full * (0.5 + share / 2);
}

// Another share at each call, for BackOff. Thread-safe.
inline double RandomShare() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(random);
}

}  // namespace assay::agent

#endif  // WORKER_AGENT_BACK_OFF_H_
