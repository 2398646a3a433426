#include "worker/agent/control_group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::agent {
namespace {

constexpr char kMembers[] = "cgroup.procs";
constexpr char kProcessLimit[] = "pids.max";
constexpr int kExitCannotJoin = 126;   // as a shell says that it cannot execute
constexpr int kEndAttempts = 1000;     // to find a group empty,
constexpr int kEndAttemptPauseMs = 5;  // with this in between
constexpr mode_t kGroupMode = 0755;
constexpr size_t kGroupNameBytes = 16;
constexpr int64_t kAlmostBytes = 1 << 20;  // pages are refused that would go beyond the limit

// A hierarchy as it is mounted.
struct Mount {
  std::string root;  // the group that is seen at `point`
  std::string point;
};

bool Contains(const std::vector<absl::string_view>& words, absl::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The mount of a hierarchy: that of version 2, or of `controller`. Empty if there is none.
Mount FindMount(absl::string_view mountinfo, absl::string_view controller) {
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(line, " - ");
    const std::vector<absl::string_view> mount = absl::StrSplit(halves.first, ' ');
    const std::vector<absl::string_view> system = absl::StrSplit(halves.second, ' ');
    if (mount.size() < 5 || system.size() < 3) continue;
    const std::vector<absl::string_view> options = absl::StrSplit(system[2], ',');
    const bool is_it = controller.empty() ? system[0] == "cgroup2"
                                          : system[0] == "cgroup" && Contains(options, controller);
    if (is_it) return {std::string(mount[3]), std::string(mount[4])};
  }
  return {};
}

// The group in which a process is, as its /proc/PID/cgroup says.
std::string FindGroup(absl::string_view cgroup, absl::string_view controller) {
  for (const absl::string_view line : absl::StrSplit(cgroup, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (Contains(controllers, controller)) return std::string(parts[2]);
  }
  return "";
}

// Empty if the hierarchy is not mounted.
std::string FindFolder(absl::string_view cgroup, absl::string_view mountinfo,
                       absl::string_view controller) {
  const Mount mount = FindMount(mountinfo, controller);
  const std::string own = FindGroup(cgroup, controller);
  if (mount.point.empty() || own.empty()) return "";
  absl::string_view group = own;
  if (mount.root != "/") absl::ConsumePrefix(&group, mount.root);
  absl::ConsumePrefix(&group, "/");
  return group.empty() ? mount.point : JoinPath(mount.point, group);
}

// Control files are there or not: none is ever made.
absl::Status Write(const std::string& folder, absl::string_view file, absl::string_view text) {
  const std::string path = JoinPath(folder, file);
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.is_open() && write(fd.get(), text.data(), text.size()) >= 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", text, " to ", path));
}

UniqueFd OpenToWrite(const std::string& folder, absl::string_view file) {
  return UniqueFd(open(JoinPath(folder, file).c_str(), O_WRONLY | O_CLOEXEC));
}

// A number of a file of the form "name number", or the only one of a file; 0 if it has none.
int64_t Count(const std::string& folder, absl::string_view file, absl::string_view name) {
  const std::string text = ReadFile(JoinPath(folder, file)).value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    int64_t count = 0;
    if (!name.empty() && !absl::ConsumePrefix(&line, absl::StrCat(name, " "))) continue;
    if (absl::SimpleAtoi(line, &count)) return count;
  }
  return 0;
}

std::vector<pid_t> Members(const std::string& folder) {
  std::vector<pid_t> members;
  const std::string text = ReadFile(JoinPath(folder, kMembers)).value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(line, &pid) && pid > 0) members.push_back(pid);
  }
  return members;
}

// Until it is empty: whoever forked meanwhile is among the next.
absl::Status KillMembers(const std::string& folder) {
  for (int attempt = 0; attempt < kEndAttempts; ++attempt) {
    const std::vector<pid_t> members = Members(folder);
    if (members.empty()) return absl::OkStatus();
    for (const pid_t pid : members)
      kill(pid, SIGKILL);
    poll(nullptr, 0, kEndAttemptPauseMs);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("processes in ", folder, " still live after they were killed"));
}

absl::Status KillAll(const std::vector<std::string>& folders, const UniqueFd& process_limit,
                     const UniqueFd& kill_file) {
  if (process_limit.is_open()) WriteAll(process_limit.get(), "0").IgnoreError();
  if (kill_file.is_open()) WriteAll(kill_file.get(), "1").IgnoreError();
  for (const std::string& folder : folders)
    RETURN_IF_ERROR(KillMembers(folder));
  return absl::OkStatus();
}

// Version 2 alone: lets groups below this one have limits.
absl::Status EnableControllers(const std::string& folder) {
  const std::string controllers = ReadFile(JoinPath(folder, "cgroup.controllers")).value_or("");
  for (const char* const controller : {"memory", "pids"})
    if (!absl::StrContains(controllers, controller))
      return absl::FailedPreconditionError(absl::StrCat(folder, " has no controller \"", controller,
                                                        "\": let the agent's unit say Delegate="));
  const absl::Status enabled = Write(folder, "cgroup.subtree_control", "+memory +pids");
  if (enabled.ok()) return enabled;
  return absl::FailedPreconditionError(
      absl::StrCat(enabled.message(), ": let the agent's unit say Delegate=memory pids and ",
                   "DelegateSubgroup=", kAgentGroup));
}

absl::Status SetMemoryLimit(const GroupParent& parent, const std::string& folder, int64_t mib) {
  if (mib <= 0) return absl::OkStatus();
  const bool is_second = parent.version == 2;
  const std::string bytes = absl::StrCat(mib << 20);
  RETURN_IF_ERROR(Write(folder, is_second ? "memory.max" : "memory.limit_in_bytes", bytes));
  // In version 1 that of memory and swap together. Kernels without swap have neither.
  const absl::Status without_swap =
      Write(folder, is_second ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
            is_second ? "0" : bytes);
  if (!absl::IsNotFound(without_swap)) RETURN_IF_ERROR(without_swap);
  return absl::OkStatus();
}

// By the directory, so that a copy of it on another node names nobody's group.
std::string RunGroupName(const RunDirectory& directory) {
  return absl::StrCat("assay-", Sha256Hex(directory.path()).substr(0, kGroupNameBytes));
}

}  // namespace

absl::StatusOr<GroupParent> FindGroupParent(absl::string_view cgroup, absl::string_view mountinfo) {
  GroupParent parent{.version = 1,
                     .memory = FindFolder(cgroup, mountinfo, "memory"),
                     .pids = FindFolder(cgroup, mountinfo, "pids")};
  if (!parent.memory.empty() && !parent.pids.empty()) return parent;
  std::string folder = FindFolder(cgroup, mountinfo, "");
  if (folder.empty())
    return absl::FailedPreconditionError("no control groups with memory and pids are mounted");
  const std::string suffix = absl::StrCat("/", kAgentGroup);
  if (absl::EndsWith(folder, suffix)) folder.resize(folder.size() - suffix.size());
  return GroupParent{.version = 2, .memory = folder, .pids = folder};
}

std::vector<std::string> GroupFolders(const GroupParent& parent, absl::string_view name) {
  std::vector<std::string> folders = {JoinPath(parent.memory, name)};
  if (parent.pids != parent.memory) folders.push_back(JoinPath(parent.pids, name));
  return folders;
}

ControlGroup::ControlGroup(const GroupParent& parent, std::vector<std::string> folders,
                           int64_t memory_bytes)
    : version_(parent.version),
      folders_(std::move(folders)),
      memory_folder_(folders_.front()),
      memory_bytes_(memory_bytes),
      process_limit_(OpenToWrite(folders_.back(), kProcessLimit)),
      kill_(OpenToWrite(folders_.front(), "cgroup.kill")) {}

absl::StatusOr<ControlGroup> ControlGroup::Make(const GroupParent& parent, absl::string_view name,
                                                const Limits& limits) {
  if (parent.version == 2) RETURN_IF_ERROR(EnableControllers(parent.memory));
  std::vector<std::string> folders = GroupFolders(parent, name);
  RETURN_IF_ERROR(RemoveControlGroup(folders));
  absl::Cleanup remove = [&folders] { RemoveControlGroup(folders).IgnoreError(); };
  for (const std::string& folder : folders)
    if (mkdir(folder.c_str(), kGroupMode) != 0)
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the control group ", folder));
  RETURN_IF_ERROR(SetMemoryLimit(parent, folders.front(), limits.memory_mib));
  RETURN_IF_ERROR(Write(folders.back(), kProcessLimit, absl::StrCat(limits.process_count_max)));
  std::move(remove).Cancel();
  return ControlGroup(parent, std::move(folders), limits.memory_mib << 20);
}

// Also the node's own lack of memory kills: only where the limit was reached, it was that.
bool ControlGroup::HasRunOutOfMemory() const {
  if (memory_bytes_ <= 0) return false;
  if (version_ == 2)
    return Count(memory_folder_, "memory.events", "oom") > 0 &&
           Count(memory_folder_, "memory.events", "oom_kill") > 0;
  // Not the failcnt: with a limit of memory and swap Linux 6.18 does not count.
  const int64_t peak_bytes = std::max(Count(memory_folder_, "memory.max_usage_in_bytes", ""),
                                      Count(memory_folder_, "memory.memsw.max_usage_in_bytes", ""));
  return peak_bytes >= memory_bytes_ - kAlmostBytes &&
         Count(memory_folder_, "memory.oom_control", "oom_kill") > 0;
}

absl::Status ControlGroup::Kill() const {
  return KillAll(folders_, process_limit_, kill_);
}

absl::Status RemoveControlGroup(const std::vector<std::string>& folders) {
  if (folders.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(KillAll(folders, OpenToWrite(folders.back(), kProcessLimit),
                          OpenToWrite(folders.front(), "cgroup.kill")));
  for (const std::string& folder : folders) {
    // The last to leave may not be quite gone.
    for (int attempt = 0; rmdir(folder.c_str()) != 0 && errno != ENOENT; ++attempt) {
      if (errno != EBUSY || attempt == kEndAttempts)
        return absl::ErrnoToStatus(errno, absl::StrCat("cannot remove the control group ", folder));
      poll(nullptr, 0, kEndAttemptPauseMs);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ControlGroup> MakeRunGroup(const RunDirectory& directory,
                                          const ControlGroup::Limits& limits) {
  ASSIGN_OR_RETURN(const std::string cgroup, ReadFile("/proc/self/cgroup"));
  ASSIGN_OR_RETURN(const std::string mountinfo, ReadFile("/proc/self/mountinfo"));
  ASSIGN_OR_RETURN(const GroupParent parent, FindGroupParent(cgroup, mountinfo));
  const std::string name = RunGroupName(directory);
  // First, so that whoever comes after this process knows what to remove.
  RETURN_IF_ERROR(WriteFileAtomic(directory.GroupPath(),
                                  absl::StrJoin(GroupFolders(parent, name), "\n"), kPrivateFile));
  return ControlGroup::Make(parent, name, limits);
}

absl::Status RemoveRunGroup(const RunDirectory& directory) {
  const absl::StatusOr<std::string> text = ReadFile(directory.GroupPath());
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  RETURN_IF_ERROR(text.status());
  const std::string own_end = absl::StrCat("/", RunGroupName(directory));
  std::vector<std::string> folders = absl::StrSplit(*text, '\n', absl::SkipEmpty());
  std::erase_if(folders,
                [&own_end](const std::string& folder) { return !absl::EndsWith(folder, own_end); });
  return RemoveControlGroup(folders);
}

std::vector<std::string> AsMember(const std::vector<std::string>& folders,
                                  const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {"/proc/self/exe", kJoinMode, absl::StrCat(folders.size())};
  arguments.insert(arguments.end(), folders.begin(), folders.end());
  arguments.insert(arguments.end(), command.begin(), command.end());
  return arguments;
}

int ExecAsMember(const std::vector<std::string>& arguments) {
  size_t count = 0;
  absl::Status status;
  if (arguments.empty() || !absl::SimpleAtoi(arguments[0], &count) || arguments.size() < count + 2)
    status = absl::InvalidArgumentError("folders of a group and a command are missing");
  for (size_t i = 1; status.ok() && i <= count; ++i)
    status = Write(arguments[i], kMembers, "0");
  if (status.ok()) {
    std::vector<char*> argv;
    for (size_t i = count + 1; i < arguments.size(); ++i)
      argv.push_back(const_cast<char*>(arguments[i].c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot execute ", argv[0]));
  }
  LOG(ERROR) << "not in its control group: " << status;
  return kExitCannotJoin;
}

}  // namespace assay::agent
