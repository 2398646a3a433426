// A control group of the kernel around a run's programs on this node: what memory and how many
// processes they may have together, and who they all are, whatever they have become.

#ifndef WORKER_AGENT_CONTROL_GROUP_H_
#define WORKER_AGENT_CONTROL_GROUP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "worker/agent/run_directory.h"

namespace assay::agent {

// The group of an agent that is alone in it, so that others can be made beside it: version 2 lets a
// group limit others only if no process is in it itself.
inline constexpr char kAgentGroup[] = "assay-agent";

// Where groups can be made; the folders are the same in version 2.
struct GroupParent {
  int version = 0;     // of control groups: 1 or 2
  std::string memory;  // folder of the group, by its controller
  std::string pids;
  bool operator==(const GroupParent&) const = default;
};

// Below the group of the process whose /proc/PID/cgroup and /proc/PID/mountinfo these are; beside
// it if it is kAgentGroup. Of version 1 if that has the controllers, else of version 2.
// FAILED_PRECONDITION if none is mounted.
absl::StatusOr<GroupParent> FindGroupParent(absl::string_view cgroup, absl::string_view mountinfo);

// The folders of the group `name`: one, or one for each controller.
std::vector<std::string> GroupFolders(const GroupParent& parent, absl::string_view name);

// Not thread-safe. One that is destroyed leaves the group alone.
class ControlGroup {
 public:
  struct Limits {
    int64_t memory_mib = 0;         // without swap; 0: none
    int64_t process_count_max = 0;  // threads counted
  };

  // Makes it, empty; what another of that name holds is killed. FAILED_PRECONDITION if this process
  // may not, with the remedy.
  static absl::StatusOr<ControlGroup> Make(const GroupParent& parent, absl::string_view name,
                                           const Limits& limits);

  int version() const { return version_; }
  const std::vector<std::string>& folders() const { return folders_; }

  // Whether one of its processes was killed because its limit was reached.
  bool HasRunOutOfMemory() const;

  // Kills all that is in it: nobody can fork any more. Works also once the rights to make it are
  // given up, as long as those to kill are there. DEADLINE_EXCEEDED if something still lives.
  absl::Status Kill() const;

 private:
  ControlGroup(const GroupParent& parent, std::vector<std::string> folders, int64_t memory_bytes);

  int version_;
  std::vector<std::string> folders_;
  std::string memory_folder_;
  int64_t memory_bytes_;    // 0: no limit
  UniqueFd process_limit_;  // to forbid forks
  UniqueFd kill_;           // where the kernel has it
};

// Kills what is in these folders of a group, and removes them. Folders that are not there are none.
// PERMISSION_DENIED if this process may not.
absl::Status RemoveControlGroup(const std::vector<std::string>& folders);

// The group of a run's programs on this node, below this process's own, and named in the run's
// directory from before it is made.
absl::StatusOr<ControlGroup> MakeRunGroup(const RunDirectory& directory,
                                          const ControlGroup::Limits& limits);

// Removes it, whoever has made it, if there is one; not where the directory is a copy. The errors
// of RemoveControlGroup.
absl::Status RemoveRunGroup(const RunDirectory& directory);

// Arguments of a process of ours that joins the group and becomes `command`.
inline constexpr char kJoinMode[] = "join";
std::vector<std::string> AsMember(const std::vector<std::string>& folders,
                                  const std::vector<std::string>& command);

// What such a process does with its arguments after kJoinMode. Returns only if that is impossible,
// with an exit code; standard error says why.
int ExecAsMember(const std::vector<std::string>& arguments);

}  // namespace assay::agent

#endif  // WORKER_AGENT_CONTROL_GROUP_H_
