#include "worker/agent/trainer_group.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"

namespace assay::agent {
namespace {

// Children inherit the affinity of the thread that spawns them.
absl::Status PinThisThread(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores)
    CPU_SET(static_cast<size_t>(core), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0)
    return absl::ErrnoToStatus(errno, "cannot pin a trainer to the cores of the configuration");
  return absl::OkStatus();
}

// The longest that the kernel may take to end what was killed.
constexpr absl::Duration kEndPatience = absl::Seconds(30);

// Becomes another process that is a child of this one too, and says which (EnterSandbox). One that
// leads the group does so from now on, though it may not have come to say so itself: the next to be
// started joins it.
absl::StatusOr<ProcessId> FollowIntoSandbox(const ProcessId& outside, int fd, bool is_leader) {
  std::string number;
  std::array<char, 32> piece{};
  ssize_t count = 0;
  while ((count = read(fd, piece.data(), piece.size())) > 0)
    number.append(piece.data(), static_cast<size_t>(count));
  RETURN_IF_ERROR(WaitForExit(outside, absl::InfiniteDuration()).status());
  pid_t pid = 0;
  if (!absl::SimpleAtoi(number, &pid))
    return absl::UnavailableError("a process cannot enter the sandbox; its output says why");
  // EACCES: it has, and executes its program already. ESRCH: it has ended.
  if (is_leader && setpgid(pid, pid) != 0 && errno != EACCES && errno != ESRCH)
    return absl::ErrnoToStatus(errno, "cannot make a group of processes");
  const absl::StatusOr<ProcessId> inside = IdentifyProcess(pid);
  return inside.ok() ? *inside : ProcessId{pid, 0};  // it has ended, and waits to be waited for
}

absl::StatusOr<ProcessId> StartProcess(const RankCommand& command, pid_t group) {
  SpawnOptions options{.argv = command.argv,
                       .environment = command.environment,
                       .working_directory = command.working_directory,
                       .output_path = command.output_path,
                       .process_group = group,
                       .inherited_fd = command.inherited_fd};
  if (!command.is_in_sandbox) return Spawn(options);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  options.inherited_fd = writing.get();
  ASSIGN_OR_RETURN(const ProcessId outside, Spawn(options));
  writing.Reset();
  return FollowIntoSandbox(outside, reading.get(), /*is_leader=*/group == 0);
}

}  // namespace

absl::Status TrainerGroup::Start(const RankCommand& command) {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof(before), &before) != 0)
    return absl::ErrnoToStatus(errno, "cannot read the cores of this process");
  const auto restore =
      absl::MakeCleanup([&before] { sched_setaffinity(0, sizeof(before), &before); });
  if (!command.cores.empty()) RETURN_IF_ERROR(PinThisThread(command.cores));
  const pid_t group = ranks_.empty() ? 0 : ranks_.front().process.pid;
  ASSIGN_OR_RETURN(const ProcessId process, StartProcess(command, group));
  UniqueFd exit_fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!exit_fd.is_open())
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch process ", process.pid));
  ranks_.push_back(Rank{command.rank, process, std::move(exit_fd)});
  return absl::OkStatus();
}

absl::Status TrainerGroup::ObserveStops(const Rank& rank) {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_PIDFD, static_cast<id_t>(rank.exit_fd.get()), &info,
               WSTOPPED | WCONTINUED | WNOHANG) != 0) {
      if (errno == ECHILD) return absl::OkStatus();  // it has ended: nothing of the kind can come
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot wait for rank ", rank.rank));
    }
    if (info.si_pid == 0) return absl::OkStatus();
    stops_.push_back({rank.rank, info.si_code == CLD_STOPPED});
  }
}

absl::Status TrainerGroup::Observe() {
  for (Rank& rank : ranks_) {
    if (!rank.exit_fd.is_open()) continue;
    RETURN_IF_ERROR(ObserveStops(rank));
    siginfo_t info{};
    if (waitid(P_PIDFD, static_cast<id_t>(rank.exit_fd.get()), &info,
               WEXITED | WNOHANG | WNOWAIT) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot wait for rank ", rank.rank));
    }
    if (info.si_pid == 0) continue;  // it runs
    rank.exit_fd.Reset();
    const int code = info.si_code == CLD_EXITED ? info.si_status : kSignalBase + info.si_status;
    exits_.push_back({rank.rank, code});
    if (code != 0 && !first_failure_.has_value()) first_failure_ = RankExit{rank.rank, code};
  }
  return absl::OkStatus();
}

absl::Status TrainerGroup::End() {
  RETURN_IF_ERROR(Signal(SIGKILL));
  for (const Rank& rank : ranks_)
    RETURN_IF_ERROR(WaitForExit(rank.process, absl::InfiniteDuration()).status());
  return EndDescendants(kEndPatience);
}

absl::Status TrainerGroup::Signal(int signal) const {
  if (ranks_.empty()) return absl::OkStatus();
  return SignalGroup(ranks_.front().process, signal);
}

std::vector<int> TrainerGroup::ExitFds() const {
  std::vector<int> fds;
  for (const Rank& rank : ranks_)
    if (rank.exit_fd.is_open()) fds.push_back(rank.exit_fd.get());
  return fds;
}

int TrainerGroup::running_count() const {
  return static_cast<int>(ExitFds().size());
}

std::vector<std::pair<int, pid_t>> TrainerGroup::Running() const {
  std::vector<std::pair<int, pid_t>> running;
  for (const Rank& rank : ranks_)
    if (rank.exit_fd.is_open()) running.emplace_back(rank.rank, rank.process.pid);
  return running;
}

std::vector<ProcessId> TrainerGroup::processes() const {
  std::vector<ProcessId> result;
  for (const Rank& rank : ranks_)
    result.push_back(rank.process);
  return result;
}

}  // namespace assay::agent
