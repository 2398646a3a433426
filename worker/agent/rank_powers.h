// Whether ranks could undo what witnesses their run: read back from the kernel once they have given
// up what they were to give up (account.h).

#ifndef WORKER_AGENT_RANK_POWERS_H_
#define WORKER_AGENT_RANK_POWERS_H_

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/agent/run_directory.h"

namespace assay::agent {

// Who asks for the powers of a process.
struct Watcher {
  uid_t account = 0;
  std::string program;  // as the kernel names it (/proc/self/comm)
};

// What /proc/PID/status says: nullopt if the process is not a rank yet (it may still get
// privileges, or is still the watcher's own program, which gives up what it has before it becomes
// the rank's: under systemd all of them have NoNewPrivileges), empty if it can undo nothing, else
// why it can, to follow "rank 3". `has_own_users`: it is in a user namespace of its own, where
// capabilities mean nothing to us.
std::optional<std::string> PowersIn(absl::string_view status, const Watcher& witness,
                                    bool has_own_users);

// Not thread-safe.
class RankPowers {
 public:
  // Looks at each rank of these (rank, process) that was not looked at yet, and says in the log
  // what it finds. Those whose status this process may not read stay unknown. `touching`: the rank
  // that has touched the data, so it is one however its program is called.
  void Look(const std::vector<std::pair<int, pid_t>>& ranks,
            std::optional<int> touching = std::nullopt);

  // W-TRAINER-ROOT, if one of them could; the first that was found.
  std::optional<WitnessHole> Hole() const;

 private:
  std::set<pid_t> known_;
  std::string found_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_RANK_POWERS_H_
