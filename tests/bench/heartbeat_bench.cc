// How late a step's heartbeat comes on this machine as it is, and what it would tell of itself: the
// false alarms of R-PAU-002. docs/benchmarks/witness.md has the figures.
//
// Usage: heartbeat_bench [minutes, default 60]
//   With real-time priority where that is allowed: under `prlimit --rtprio=0`, as an account
//   without CAP_SYS_NICE, without it. Its last line is the log's, as a step writes it.

#include <unistd.h>

#include <cstdio>

#include "absl/strings/numbers.h"

#include "worker/agent/pause_watch.h"

int main(int argc, char** argv) {
  constexpr int kSecondsPerMinute = 60;
  int minutes = 60;
  if (argc > 1 && (!absl::SimpleAtoi(argv[1], &minutes) || minutes <= 0)) {
    std::fprintf(stderr, "usage: heartbeat_bench [minutes]\n");
    return 2;
  }
  const assay::agent::Heartbeat heartbeat;
  for (int minute = 0; minute < minutes; ++minute)
    for (unsigned left = kSecondsPerMinute; left > 0;)
      left = sleep(left);
  for (const assay::agent::NodeFault& fault : heartbeat.faults())
    std::printf("%s: %s\n", fault.rule.c_str(), fault.found.c_str());
  std::printf("%zu pauses told\n", heartbeat.faults().size());
  return 0;
}
