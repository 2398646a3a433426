// Watches what is done to ranks that their parent is not told of: somebody traces them, or freezes
// their control group. Both stop them, and the run's clock goes on. Or they are not the processes
// any more that were started, because somebody restored them from an image.

#ifndef WORKER_AGENT_RANK_WATCH_H_
#define WORKER_AGENT_RANK_WATCH_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "worker/agent/run_directory.h"

namespace assay::agent {

// Not thread-safe.
class RankWatch {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  explicit RankWatch(std::string proc = "/proc", std::string cgroups = "/sys/fs/cgroup")
      : proc_(std::move(proc)), cgroups_(std::move(cgroups)) {}

  // Looks at the ranks that run, by rank; at most once each kInterval, but always when none is
  // left. True if something has ended that was done to one: R-PAU-003 traced, R-PAU-004 frozen.
  bool Look(const std::vector<std::pair<int, pid_t>>& ranks, const Stamp& now);

  // True while something is done to a rank that will be told.
  bool is_hindered() const { return !open_.empty(); }

  // At most a hundred.
  const std::vector<NodeFault>& faults() const { return faults_; }

  // Why a rank is not the process that was seen first, or this node's boot not the one of then;
  // none as long as all are. Such a run is not one that a clock has timed.
  const std::optional<std::string>& replaced() const { return replaced_; }

 private:
  // By rank and rule: since when, and what to say of it.
  struct Hindrance {
    Stamp since;
    std::string what;
  };
  using Key = std::pair<int, std::string>;

  void LookWho(int rank, pid_t pid);
  void LookWhichBoot();
  std::optional<std::string> TracerOf(pid_t pid) const;
  bool IsFrozen(pid_t pid) const;

  const std::string proc_;
  const std::string cgroups_;
  std::optional<int64_t> looked_ns_;
  std::map<Key, Hindrance> open_;
  std::vector<NodeFault> faults_;
  std::string boot_id_;
  std::map<pid_t, int64_t> started_;  // in clock ticks after the boot, as it was seen first
  std::optional<std::string> replaced_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_RANK_WATCH_H_
