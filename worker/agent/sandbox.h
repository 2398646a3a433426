// Namespaces around other people's programs, made by bubblewrap: they see the system and what the
// run gives them, and neither the agent's keys nor its processes, which may belong to the same
// account. One sandbox for all ranks of a run on a node: they share /dev/shm and see each other.

#ifndef WORKER_AGENT_SANDBOX_H_
#define WORKER_AGENT_SANDBOX_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/process.h"
#include "worker/agent/account.h"

namespace assay::agent {

inline constexpr char kBubblewrap[] = "/usr/bin/bwrap";

// Paths are absolute and the same inside as outside.
struct SandboxOptions {
  std::optional<Account> user;  // whose processes it is for; nullopt: this process's
  // What / is, but for what is named here, devices and the kernel's folders, and the node's names
  // of hosts. Empty: the node's system and `software`.
  std::string root;
  std::vector<std::string> software;  // besides the system's folders, to be read like these
  std::vector<std::string> hidden;    // of what lies in those: folders that are empty inside
  std::vector<std::string> readable;  // of what is hidden, or anywhere
  std::vector<std::string> writable;
  std::string temporary_directory;  // what /tmp is
  std::string hold_program;         // assay-hold; empty: beside this process's program
  std::string log_path;             // for what bubblewrap complains of
};

// The network is the host's. Ends with this process at the latest.
class Sandbox {
 public:
  // Blocks until it stands. FAILED_PRECONDITION, with bubblewrap's own words, if the node cannot:
  // there is no bubblewrap, or the kernel lets no user make namespaces.
  static absl::StatusOr<Sandbox> Open(const SandboxOptions& options);

  // Its first process, as this process's namespace counts. Ranks enter by it.
  pid_t first_process() const { return first_process_; }

 private:
  explicit Sandbox(pid_t first_process) : first_process_(first_process) {}
  pid_t first_process_;
};

// Lets this process, which has one thread and the account that the sandbox was made for, go on
// inside, in the same directory and without any capability there, as another child of its parent.
// It leads a process group of its own if it led one. What it was has exited by then, and has
// written the number of the one that goes on, in ASCII, to kHoldFd.
absl::Status EnterSandbox(pid_t first_process);

}  // namespace assay::agent

#endif  // WORKER_AGENT_SANDBOX_H_
