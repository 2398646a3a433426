// The processes of one run on one node in one process group.

#ifndef WORKER_AGENT_TRAINER_GROUP_H_
#define WORKER_AGENT_TRAINER_GROUP_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "common/file.h"
#include "common/process.h"
#include "worker/agent/workload/workload.h"

namespace assay::agent {

// A rank was stopped by a signal (SIGSTOP), or goes on.
struct RankStop {
  int rank = 0;
  bool is_stopped = false;
};

// Ended ranks stay zombies until End: the group's number cannot be reused meanwhile. Not
// thread-safe. A group that is destroyed leaves its processes alone.
class TrainerGroup {
 public:
  // Starts one more rank. The errors of Spawn, or of the kernel if it cannot be pinned; UNAVAILABLE
  // if it cannot enter its sandbox.
  absl::Status Start(const RankCommand& command);

  // Takes note of the ranks that have ended, were stopped or go on. Does not block.
  absl::Status Observe();

  // What Observe has seen of stops since the last call, in order for each rank. Where a rank was
  // stopped and continued in between, only that it goes on.
  std::vector<RankStop> TakeStops() { return std::exchange(stops_, {}); }

  // What Observe has seen of ends since the last call, in no particular order.
  std::vector<RankExit> TakeExits() { return std::exchange(exits_, {}); }

  // Sends `signal` to every process of the group, children of the ranks included.
  absl::Status Signal(int signal) const;

  // Kills what is left of the group, and whatever else descends from this process, also what has
  // left the group and the session; reaps all. DEADLINE_EXCEEDED if after half a minute something
  // still lives.
  absl::Status End();

  // One descriptor per process that runs; each becomes readable when it ends.
  std::vector<int> ExitFds() const;

  int running_count() const;
  // The first rank that ended with another code than 0.
  const std::optional<RankExit>& first_failure() const { return first_failure_; }
  std::vector<ProcessId> processes() const;
  // Those that run, by rank; a launcher is kLauncherRank.
  std::vector<std::pair<int, pid_t>> Running() const;

 private:
  struct Rank {
    int rank = 0;
    ProcessId process;
    UniqueFd exit_fd;  // closed once it is known to have ended
  };

  absl::Status ObserveStops(const Rank& rank);

  std::vector<Rank> ranks_;
  std::optional<RankExit> first_failure_;
  std::vector<RankStop> stops_;
  std::vector<RankExit> exits_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_TRAINER_GROUP_H_
