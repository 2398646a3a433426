// Watches whether a node's ranks stand still while their run goes on: they wait for something, and
// nothing that they could wait for moves.

#ifndef WORKER_AGENT_STALL_WATCH_H_
#define WORKER_AGENT_STALL_WATCH_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "common/process.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

// Not thread-safe.
class StallWatch {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  struct Options {
    std::string proc = "/proc";
    std::string sys = "/sys";
    std::string dev = "/dev";
    std::function<std::vector<pid_t>(pid_t)> descendants = DescendantsOf;
  };
  explicit StallWatch(Options options) : options_(std::move(options)) {}

  // Looks at the ranks that run, by rank, at most once each kInterval; pass none where they are not
  // to be judged. True if a stall has ended: R-PAU-005, for two seconds at least no rank and
  // nothing that descends from one had a processor, and disks and networks of the node moved no
  // more than other services do. Nothing is said of a node with GPUs, which work on without a
  // processor, or with a fabric that does not tell.
  bool Look(const std::vector<std::pair<int, pid_t>>& ranks, const Stamp& now);

  // At most a hundred.
  const std::vector<NodeFault>& faults() const { return faults_; }

 private:
  // What has changed if anything goes on.
  struct Work {
    std::vector<pid_t> processes;  // of the ranks
    int64_t cpu_ticks = 0;         // of all of these
    int64_t moved_bytes = 0;       // of the node's disks and networks
  };

  std::optional<int64_t> TicksOf(pid_t pid) const;
  std::optional<Work> ReadWork(const std::vector<std::pair<int, pid_t>>& ranks) const;
  std::optional<int64_t> FabricBytes() const;
  bool HasGpus() const;
  bool HasMoved(const Work& work, int64_t passed_ns) const;
  bool Close();

  const Options options_;
  std::optional<int64_t> looked_ns_;
  std::optional<int64_t> rank_ticks_;  // of the ranks alone, at the last look
  std::optional<Work> work_;           // at the last look, if no rank had worked
  std::optional<Stamp> since_;
  int64_t quiet_ns_ = 0;  // when it was last seen that nothing had moved
  std::vector<NodeFault> faults_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_STALL_WATCH_H_
