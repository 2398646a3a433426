// Watches whether the clocks of this node can be trusted while a run goes on: whether anybody sets
// the wall clock, and whether the monotonic clock, by which runs are timed, keeps to the
// hardware's.

#ifndef WORKER_AGENT_CLOCK_WATCH_H_
#define WORKER_AGENT_CLOCK_WATCH_H_

#include <time.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "worker/agent/run_directory.h"

namespace assay::agent {

// The node's clocks at one moment, in nanoseconds.
struct ClockReading {
  int64_t wall_ns = 0;
  int64_t mono_ns = 0;  // which adjtimex speeds up and slows down
  int64_t raw_ns = 0;   // the hardware's, which nobody can touch
  int64_t boot_ns = 0;  // as mono_ns, and counts while the node is suspended

  // The hardware's, with the time that the node was suspended.
  int64_t NodeNs() const { return raw_ns + (boot_ns - mono_ns); }
};

// What the clock shows, in nanoseconds since its zero.
int64_t ReadClockNs(clockid_t clock);

// CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW and CLOCK_BOOTTIME, the tightest of a few
// readings.
ClockReading ReadClocks();

// Not thread-safe.
class ClockWatch {
 public:
  explicit ClockWatch(std::function<ClockReading()> read = ReadClocks);

  // Compares since the last comparison, once enough time has passed to tell; at the end, whatever
  // has. True if that found something new.
  bool Look(bool is_final);

  // At most a hundred.
  const std::vector<NodeFault>& faults() const { return faults_; }

 private:
  void Compare(const ClockReading& now);

  const std::function<ClockReading()> read_;
  ClockReading last_;
  std::vector<NodeFault> faults_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_CLOCK_WATCH_H_
