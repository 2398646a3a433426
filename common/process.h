// Child processes: spawned into a process group of their own, waited for, stopped.
//
// posix_spawn, never fork: a process that runs gRPC threads must not fork and continue.

#ifndef COMMON_PROCESS_H_
#define COMMON_PROCESS_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace assay {

// The number that an inherited descriptor has in the child.
inline constexpr int kInheritedFd = 3;

struct SpawnOptions {
  std::vector<std::string> argv;         // argv[0] is the program's path
  std::vector<std::string> environment;  // "NAME=value", added to this process's environment
  std::string working_directory;         // empty: this process's
  std::string output_path;               // stdout and stderr are appended here; empty: inherited
  bool new_session = false;              // setsid: survives the death of this process's terminal
  pid_t process_group = 0;               // 0: a new group, led by the child; ignored by new_session
  int inherited_fd = -1;                 // open in the child too, as kInheritedFd; -1: none
  int input_fd = -1;                     // its stdin; -1: inherited
  bool has_own_environment = false;      // `environment` is all of it
};

// A process that can be told apart from a later one with the same number.
struct ProcessId {
  pid_t pid = 0;
  int64_t start_ticks = 0;  // field 22 of /proc/<pid>/stat
  bool operator==(const ProcessId&) const = default;
};

// Tells one boot of this machine from the next. Empty if the kernel does not say.
std::string BootId();

// Starts a child; every descriptor above 2 but an inherited one is closed in it. NOT_FOUND if the
// program is missing.
absl::StatusOr<ProcessId> Spawn(const SpawnOptions& options);

// Who `pid` is now. NOT_FOUND if there is no such process.
absl::StatusOr<ProcessId> IdentifyProcess(pid_t pid);

// True if `pid` is `ancestor` or descends from it. False for a process that has ended and was
// reaped.
bool IsDescendant(pid_t pid, pid_t ancestor);

// All that descends from `ancestor`, zombies included, as far as the kernel says
// (/proc/PID/task/TID/children). What is left by its parent comes back to the next subreaper.
std::vector<pid_t> DescendantsOf(pid_t ancestor);

// Kills all that descends from this process, which must be a subreaper and have no other children
// that anybody waits for, and reaps it, again and again until nothing is left. DEADLINE_EXCEEDED
// after `patience`, with the number of what still lives.
absl::Status EndDescendants(absl::Duration patience);

// True while the process exists and has not become a zombie.
bool IsRunning(const ProcessId& process);

// Waits for a child of this process. The result is its exit code, or 128 + signal number.
// DEADLINE_EXCEEDED after `timeout`; the child runs on.
absl::StatusOr<int> WaitForExit(const ProcessId& child, absl::Duration timeout);

// The exit code if the child has ended, without blocking; nullopt while it runs.
absl::StatusOr<std::optional<int>> PollExit(const ProcessId& child);

// From now on this process gets SIGTERM when the thread of `parent` ends that has started it. Ends
// it at once, by the same signal, if that has happened.
void EndWithParent(pid_t parent);

// Sends `signal` to the process group led by `leader`; OK if it is gone already.
absl::Status SignalGroup(const ProcessId& leader, int signal);

// Spawns a child and waits for its end; the result is its exit code as in WaitForExit. After
// `timeout` its whole group is killed: DEADLINE_EXCEEDED. So it is soon after `is_stopped` has
// become true, and nothing is started then: CANCELLED. Blocks.
absl::StatusOr<int> RunToEnd(const SpawnOptions& options, absl::Duration timeout,
                             const std::atomic<bool>& is_stopped);

// TERM to the group, and KILL after `grace` if the leader, a child of this process, still runs.
// Reaps the leader; the result is its exit code as in WaitForExit.
absl::StatusOr<int> StopGroup(const ProcessId& leader, absl::Duration grace);

}  // namespace assay

#endif  // COMMON_PROCESS_H_
