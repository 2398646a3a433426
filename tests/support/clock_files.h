// What the nodes of a run leave of their clocks, of a run whose start all of them know.

#ifndef TESTS_SUPPORT_CLOCK_FILES_H_
#define TESTS_SUPPORT_CLOCK_FILES_H_

#include <cmath>
#include <cstdint>
#include <string>

#include "common/node_clock.h"
#include "common/rules/arrivals.h"

namespace assay::testing {

// arrivals.jsonl of a node 0 whose clock showed `node_ns` when the log was stamped.
inline std::string StartArrivals(int64_t run_start_ms, int64_t node_ns) {
  return rules::ArrivalsText({{.record = {"run_start", 1, static_cast<double>(run_start_ms)},
                               .wall_us = run_start_ms * 1000,
                               .mono_ns = node_ns,
                               .raw_ns = node_ns,
                               .boot_ns = node_ns}});
}

// Offsets of a node whose clock showed `node_ns` at run_start, and its CLOCK_MONOTONIC as much:
// every ten seconds for a minute before and ten behind, off by `uncertainty_us` at most.
inline std::string Offsets(int64_t node_ns, double rate = 1, int64_t uncertainty_us = 400) {
  constexpr int64_t kCoordinatorUs = 5'000'000'000;
  std::string text;
  for (int64_t second = -60; second <= 600; second += 10) {
    const int64_t at_ns = node_ns + std::llround(static_cast<double>(second) * rate * 1e9);
    text += ClockSampleText({.boot_id = "boot",
                             .node_ns = at_ns,
                             .mono_ns = at_ns,
                             .offset_us = at_ns / 1000 - (kCoordinatorUs + second * 1'000'000),
                             .uncertainty_us = uncertainty_us});
  }
  return text;
}

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_CLOCK_FILES_H_
