// How nodes come to run agents. One implementation per way: attach (an operator starts them), local
// (children of the coordinator on its own host), slurm (a job of a batch system, on whose nodes
// assay-worker is started; the grant follows when it runs).

#ifndef SERVER_LAUNCH_LAUNCHER_H_
#define SERVER_LAUNCH_LAUNCHER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/core/allocation.h"

namespace assay::launch {

// The nodes of an allocation.
struct Grant {
  std::vector<std::string> workers;  // the names of their agents
  int64_t deadline_us = 0;           // when they go; 0: not known
};

// Thread-safe. Calls may block on disk and on child processes: not for reactions.
class Launcher {
 public:
  virtual ~Launcher() = default;

  // Sees to it that an agent runs on each node of the allocation, and says which nodes these are.
  // nullopt: it is asked for, and the grant follows. Called again after each start of the
  // coordinator, for what it holds already, too; the answer may differ from the one before.
  // FAILED_PRECONDITION if this launcher starts none. After an error it is called again, later.
  virtual absl::StatusOr<std::optional<Grant>> Acquire(const core::Allocation& allocation) = 0;

  // Stops the agents of an allocation, and what they started, and gives the nodes back. True: that
  // is done, also if there are none; false: the word that it is done follows. After an error it is
  // called again, later.
  virtual absl::StatusOr<bool> Release(core::AllocationId allocation) = 0;
};

}  // namespace assay::launch

#endif  // SERVER_LAUNCH_LAUNCHER_H_
