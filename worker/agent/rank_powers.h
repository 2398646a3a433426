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

// What /proc/PID/status says: nullopt if the process is not a rank yet (it may still get
// privileges), empty if it can undo nothing, else why it can, to follow "rank 3". `witness`: the
// account of who asks. `has_own_users`: it is in a user namespace of its own, where capabilities
// mean nothing to us.
std::optional<std::string> PowersIn(absl::string_view status, uid_t witness, bool has_own_users);

// Not thread-safe.
class RankPowers {
 public:
  // Looks at each rank of these (rank, process) that was not looked at yet, and says in the log
  // what it finds. Those whose status this process may not read stay unknown, and so do those that
  // are still ours, by their command lines: under systemd all processes have NoNewPrivileges, which
  // else is the last that they give up before they execute a rank's program. `touching`: the rank
  // that has touched the data, so it is one whatever its command line says.
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
