// Watches whether the step itself stands still while a run goes on: stopped by a signal, frozen, on
// a node that is suspended, or without a processor. The run's clock goes on meanwhile, and nothing
// is witnessed.

#ifndef WORKER_AGENT_PAUSE_WATCH_H_
#define WORKER_AGENT_PAUSE_WATCH_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "worker/agent/run_directory.h"

namespace assay::agent {

// The clocks of a node at a beat, in nanoseconds.
struct Beat {
  int64_t wall_ns = 0;
  int64_t mono_ns = 0;  // which stands still while the node is suspended
  int64_t boot_ns = 0;  // which does not
};

// What may explain a pause, in seconds since the node and the step have started.
struct Hindrance {
  double stolen_s = 0;  // by a host of this virtual machine, on average of its processors
  double waited_s = 0;  // the beating thread, for a processor
};

// How long the calling thread has waited for a processor since it began, in nanoseconds; 0 where
// the kernel does not count.
int64_t ThreadWaitNs();

// Judges beats that should come at an interval. Not thread-safe.
class PauseWatch {
 public:
  // `read_hindrance` is asked at a pause, and now and then in between.
  PauseWatch(const Beat& first, int64_t interval_ns, std::function<Hindrance()> read_hindrance);

  void Take(const Beat& beat);

  // R-PAU-002 for each time that a beat came more than a second late, at most a hundred.
  const std::vector<NodeFault>& faults() const { return faults_; }

  // Of all beats: how many there were, how many came over 250 ms late, and the latest.
  int64_t beat_count() const { return beat_count_; }
  int64_t late_count() const { return late_count_; }
  int64_t latest_ns() const { return latest_ns_; }
  // The latest of those of the last second.
  int64_t RecentLateNs() const;

 private:
  void Note(const Beat& beat, int64_t late_ns, int64_t suspended_ns, const Hindrance& now);

  const int64_t interval_ns_;
  const std::function<Hindrance()> read_hindrance_;
  Beat last_;
  Hindrance known_;
  int64_t known_at_ns_ = 0;
  int64_t beat_count_ = 0;
  int64_t late_count_ = 0;
  int64_t latest_ns_ = 0;
  std::deque<std::pair<int64_t, int64_t>> recent_;  // when, and how late
  std::vector<NodeFault> faults_;
};

// Beats ten times a second on a thread of its own, with real-time priority where that is allowed,
// until it is destroyed. Thread-safe.
class Heartbeat {
 public:
  Heartbeat();
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // All so far; a beat of its own.
  std::vector<NodeFault> faults() const;
  // For how long at most nothing was watched in the last second, in nanoseconds; a beat of its own.
  int64_t RecentLateNs() const;

 private:
  struct Shared;
  const std::unique_ptr<Shared> shared_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_PAUSE_WATCH_H_
