#include "common/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): unistd.h hides it without GNU

namespace assay {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& s : strings)
    pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const std::vector<std::string>& extra) {
  std::vector<std::string> result = extra;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = std::string(*entry).substr(0, std::string(*entry).find('=') + 1);
    const bool is_replaced = std::any_of(extra.begin(), extra.end(), [&](const std::string& e) {
      return e.compare(0, name.size(), name) == 0;
    });
    if (!is_replaced) result.emplace_back(*entry);
  }
  return result;
}

// What /proc/<pid>/stat says from its third field on.
absl::StatusOr<std::vector<std::string>> StatFields(pid_t pid) {
  const absl::StatusOr<std::string> stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return absl::NotFoundError(absl::StrCat("no process ", pid));
  // The second field is the command in parentheses and may itself hold spaces and parentheses.
  std::vector<std::string> fields = absl::StrSplit(stat->substr(stat->rfind(')') + 2), ' ');
  if (fields.size() < 2)
    return absl::InternalError(absl::StrCat("cannot read /proc/", pid, "/stat"));
  return fields;
}

int DecodeStatus(int status) {
  constexpr int kSignalBase = 128;
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::StatusOr<ProcessId> IdentifyProcess(pid_t pid) {
  ASSIGN_OR_RETURN(const std::vector<std::string> fields, StatFields(pid));
  constexpr size_t kStartTime = 19;  // field 22, counted from the third
  int64_t ticks = 0;
  if (fields.size() <= kStartTime || !absl::SimpleAtoi(fields[kStartTime], &ticks))
    return absl::InternalError(absl::StrCat("cannot read /proc/", pid, "/stat"));
  if (fields[0] == "Z" || fields[0] == "X")
    return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  return ProcessId{pid, ticks};
}

bool IsDescendant(pid_t pid, pid_t ancestor) {
  constexpr size_t kParent = 1;
  constexpr int kDepthMax = 10'000;  // parents may change while we look; the walk ends anyway
  for (int depth = 0; pid > 0 && depth < kDepthMax; ++depth) {
    if (pid == ancestor) return true;
    const absl::StatusOr<std::vector<std::string>> fields = StatFields(pid);
    if (!fields.ok() || !absl::SimpleAtoi((*fields)[kParent], &pid)) return false;
  }
  return false;
}

std::vector<pid_t> DescendantsOf(pid_t ancestor) {
  std::vector<pid_t> found{ancestor};
  for (size_t next = 0; next < found.size(); ++next) {
    const std::string tasks = absl::StrCat("/proc/", found[next], "/task");
    const absl::StatusOr<std::vector<std::string>> threads = ListDirectory(tasks);
    if (!threads.ok()) continue;  // it has ended meanwhile
    for (const std::string& thread : *threads) {
      const std::string text = ReadFile(absl::StrCat(tasks, "/", thread, "/children")).value_or("");
      for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipWhitespace())) {
        pid_t pid = 0;
        if (absl::SimpleAtoi(word, &pid)) found.push_back(pid);
      }
    }
  }
  found.erase(found.begin());
  return found;
}

absl::Status EndDescendants(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (true) {
    const std::vector<pid_t> left = DescendantsOf(getpid());
    if (left.empty()) return absl::OkStatus();
    for (const pid_t pid : left)
      kill(pid, SIGKILL);
    if (absl::Now() >= deadline)
      return absl::DeadlineExceededError(
          absl::StrCat(left.size(), " processes still live after they were killed"));
    // Of those that are nobody else's by now the next end is waited for, but no longer than a wink:
    // others come back to us when their parent ends.
    const UniqueFd next(static_cast<int>(syscall(SYS_pidfd_open, left.front(), 0)));
    pollfd entry{next.get(), POLLIN, 0};
    if (next.is_open()) poll(&entry, 1, 10);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

bool IsRunning(const ProcessId& process) {
  const absl::StatusOr<ProcessId> now = IdentifyProcess(process.pid);
  return now.ok() && *now == process;
}

std::string BootId() {
  const absl::StatusOr<std::string> id = ReadFile("/proc/sys/kernel/random/boot_id");
  return id.ok() ? std::string(absl::StripAsciiWhitespace(*id)) : std::string();
}

absl::StatusOr<ProcessId> Spawn(const SpawnOptions& options) {
  if (options.argv.empty()) return absl::InvalidArgumentError("nothing to run");
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  const auto destroy = absl::MakeCleanup([&] {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  });
  if (!options.output_path.empty()) {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.output_path.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  if (options.input_fd >= 0)
    posix_spawn_file_actions_adddup2(&actions, options.input_fd, STDIN_FILENO);
  if (!options.working_directory.empty())
    posix_spawn_file_actions_addchdir_np(&actions, options.working_directory.c_str());
  int first_closed = STDERR_FILENO + 1;
  if (options.inherited_fd >= 0) {
    static_assert(kInheritedFd == STDERR_FILENO + 1);
    posix_spawn_file_actions_adddup2(&actions, options.inherited_fd, kInheritedFd);
    first_closed = kInheritedFd + 1;
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, first_closed);

  // The child starts with default signal handling, whatever this process blocks or ignores.
  sigset_t all;
  sigset_t none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, options.process_group);
  int flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
  flags |= options.new_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(&attributes, static_cast<int16_t>(flags));

  const std::vector<std::string> environment =
      options.has_own_environment ? options.environment : Environment(options.environment);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, options.argv[0].c_str(), &actions, &attributes,
                                Pointers(options.argv).data(), Pointers(environment).data());
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", options.argv[0]));
  const absl::StatusOr<ProcessId> child = IdentifyProcess(pid);
  // A child that has ended already is a zombie until it is waited for: its number cannot be reused.
  return child.ok() ? *child : ProcessId{pid, 0};
}

void EndWithParent(pid_t parent) {
  CHECK(prctl(PR_SET_PDEATHSIG, SIGTERM) == 0);
  if (getppid() != parent) raise(SIGTERM);
}

absl::StatusOr<std::optional<int>> PollExit(const ProcessId& child) {
  int status = 0;
  const pid_t pid = waitpid(child.pid, &status, WNOHANG);
  if (pid < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot wait for ", child.pid));
  if (pid == 0) return std::optional<int>();
  return std::optional<int>(DecodeStatus(status));
}

absl::StatusOr<int> WaitForExit(const ProcessId& child, absl::Duration timeout) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)));
  if (!pidfd.is_open())
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch process ", child.pid));
  const absl::Time deadline = absl::Now() + timeout;
  for (;;) {
    pollfd entry{pidfd.get(), POLLIN, 0};
    const int64_t left_ms =
        std::clamp<int64_t>(absl::ToInt64Milliseconds(deadline - absl::Now()), 0, 1000);
    const int ready = poll(&entry, 1, static_cast<int>(left_ms));
    if (ready < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
    ASSIGN_OR_RETURN(const std::optional<int> code, PollExit(child));
    if (code.has_value()) return *code;
    if (absl::Now() >= deadline)
      return absl::DeadlineExceededError(absl::StrCat("process ", child.pid, " still runs"));
  }
}

absl::Status SignalGroup(const ProcessId& leader, int signal) {
  if (kill(-leader.pid, signal) != 0 && errno != ESRCH)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot signal group ", leader.pid));
  return absl::OkStatus();
}

absl::StatusOr<int> RunToEnd(const SpawnOptions& options, absl::Duration timeout,
                             const std::atomic<bool>& is_stopped) {
  constexpr absl::Duration kSlice = absl::Milliseconds(500);  // how often `is_stopped` is looked at
  if (is_stopped) return absl::CancelledError("was stopped");
  ASSIGN_OR_RETURN(const ProcessId child, Spawn(options));
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    absl::StatusOr<int> code = WaitForExit(child, std::min(kSlice, deadline - absl::Now()));
    if (!absl::IsDeadlineExceeded(code.status())) return code;
    if (!is_stopped && absl::Now() < deadline) continue;
    RETURN_IF_ERROR(SignalGroup(child, SIGKILL));
    RETURN_IF_ERROR(WaitForExit(child, absl::InfiniteDuration()).status());
    if (is_stopped) return absl::CancelledError("was stopped");
    return absl::DeadlineExceededError(
        absl::StrCat("did not end within ", absl::FormatDuration(timeout)));
  }
}

absl::StatusOr<int> StopGroup(const ProcessId& leader, absl::Duration grace) {
  RETURN_IF_ERROR(SignalGroup(leader, SIGTERM));
  const absl::StatusOr<int> code = WaitForExit(leader, grace);
  if (code.status().code() != absl::StatusCode::kDeadlineExceeded) return code;
  RETURN_IF_ERROR(SignalGroup(leader, SIGKILL));
  return WaitForExit(leader, absl::InfiniteDuration());
}

}  // namespace assay
