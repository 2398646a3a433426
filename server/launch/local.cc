#include "server/launch/local.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "common/log.h"
#include "common/process.h"
#include "common/status.h"

namespace assay::launch {
namespace {

std::string ProtoText(absl::string_view text) {
  return absl::StrCat("\"", absl::CEscape(text), "\"");
}

// WorkerConfig of proto/assay/v1/config.proto as text.
std::string AgentConfig(const LaunchRequest& request, const std::string& directory) {
  std::string text = absl::StrCat(
      "# Written by the coordinator at each start.\n", "name: ", ProtoText(request.worker),
      "\nserver_address: ", ProtoText(request.server_address),
      "\ndata_directory: ", ProtoText(JoinPath(directory, "data")),
      "\nca_certificate_path: ", ProtoText(JoinPath(directory, "ca.crt")),
      "\nenrolment_token_path: ", ProtoText(JoinPath(directory, "enrolment.token")),
      // An agent of the coordinator's own host is for trying things out, in directories that other
      // accounts need not reach: where it is root, its ranks are too. Programs are of whoever
      // started it, and lie anywhere.
      "\nrendezvous_host: \"127.0.0.1\"\nrun_user: \"root\"\nisolation: NONE\n");
  for (const auto& [name, value] : request.labels)
    absl::StrAppend(&text, "labels { key: ", ProtoText(name), " value: ", ProtoText(value), " }\n");
  if (!request.cores.empty()) {
    absl::StrAppend(&text, "core_count: ", request.cores.size(), "\ncores: [",
                    absl::StrJoin(request.cores, ", "), "]\n");
  }
  return text;
}

absl::Status WriteAgentFiles(const LaunchRequest& request, const std::string& directory) {
  RETURN_IF_ERROR(MakeDirectories(directory, kPrivateDirectory));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(directory, "ca.crt"), request.ca_pem));
  RETURN_IF_ERROR(WriteFileAtomic(JoinPath(directory, "enrolment.token"),
                                  absl::StrCat(request.enrolment_token, "\n"), 0600));
  return WriteFileAtomic(JoinPath(directory, "worker.conf"), AgentConfig(request, directory));
}

// The process that `path` names, if it still runs.
std::optional<ProcessId> ReadProcess(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return std::nullopt;
  const std::vector<absl::string_view> words =
      absl::StrSplit(*text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  ProcessId process;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &process.pid) ||
      !absl::SimpleAtoi(words[1], &process.start_ticks) || !IsRunning(process))
    return std::nullopt;
  return process;
}

// Blocks until a process, which need not be a child, has ended, or for `grace` each time that a
// signal interrupts.
void AwaitEnd(const ProcessId& process, absl::Duration grace = absl::InfiniteDuration()) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  const int timeout_ms =
      grace == absl::InfiniteDuration() ? -1 : static_cast<int>(absl::ToInt64Milliseconds(grace));
  // Only now is it certain that the descriptor means this process and not a later one.
  while (pidfd.is_open() && IsRunning(process)) {
    pollfd entry{pidfd.get(), POLLIN, 0};
    if (poll(&entry, 1, timeout_ms) >= 0) return;
  }
}

std::string PidPath(const std::string& directory) {
  return JoinPath(directory, "agent.pid");
}

// Ends an agent that an earlier coordinator has left.
void StopOrphan(const std::string& directory, absl::Duration grace) {
  const std::optional<ProcessId> found = ReadProcess(PidPath(directory));
  if (!found.has_value()) return;
  static_cast<void>(SignalGroup(*found, SIGTERM));
  AwaitEnd(*found, grace);
  if (IsRunning(*found)) static_cast<void>(SignalGroup(*found, SIGKILL));
}

}  // namespace

absl::StatusOr<std::vector<std::vector<int32_t>>> ShareCores(int32_t core_count,
                                                             int32_t worker_count,
                                                             int32_t cores_per_worker) {
  if (worker_count < 1 || worker_count > 256)
    return absl::InvalidArgumentError(
        absl::StrCat("launcher.worker_count is ", worker_count, ": give 1 to 256"));
  const int32_t each = cores_per_worker > 0 ? cores_per_worker : core_count / worker_count;
  if (each < 1 || int64_t{each} * worker_count > core_count) {
    return absl::InvalidArgumentError(
        absl::StrCat(worker_count, " workers of ", std::max(each, 1), " cores need ",
                     int64_t{std::max(each, 1)} * worker_count, ", this host has ", core_count,
                     ": lower launcher.worker_count or cores_per_worker"));
  }
  std::vector<std::vector<int32_t>> shares(static_cast<size_t>(worker_count));
  int32_t next = 0;
  for (std::vector<int32_t>& share : shares) {
    for (int32_t i = 0; i < each; ++i)
      share.push_back(next++);
  }
  return shares;
}

// One agent and the thread that watches it.
class LocalLauncher::Agent {
 public:
  Agent(std::string worker, const LocalOptions& options)
      : worker_(std::move(worker)),
        options_(options),
        directory_(JoinPath(options.directory, worker_)),
        thread_([this] { Run(); }) {}
  ~Agent() {
    RequestStop();
    thread_.join();
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  AgentInfo Describe() const {
    MutexLock lock(&mutex_);
    return info_;
  }

  // Asks the agent to end, without waiting for it.
  void RequestStop() {
    MutexLock lock(&mutex_);
    if (is_stopping_) return;
    is_stopping_ = true;
    changed_.NotifyAll();
    if (info_.state == AgentState::kRunning) static_cast<void>(SignalGroup(process_, SIGTERM));
  }

 private:
  void Run() {
    absl::Duration pause = options_.pause_min;
    while (BeginLife()) {
      const absl::Time start = absl::Now();
      const std::string end = LiveOnce();
      if (absl::Now() - start >= options_.steady_after) pause = options_.pause_min;
      if (!PauseAfter(end, pause)) return;
      pause = std::min(pause * 2, options_.pause_max);
    }
  }

  bool BeginLife() {
    MutexLock lock(&mutex_);
    info_.worker = worker_;
    return !is_stopping_;
  }

  // Starts the agent, or finds the one of an earlier coordinator, and waits for its end. Returns
  // how it ended.
  std::string LiveOnce() {
    const std::string pid_path = PidPath(directory_);
    const std::optional<ProcessId> found = ReadProcess(pid_path);
    if (found.has_value()) {
      LOG(INFO) << "agent found running worker=" << worker_ << " pid=" << found->pid;
      AnnounceRunning(*found);
      AwaitEndOrKill(*found, [&] { AwaitEnd(*found); });
      return "ended";
    }
    const absl::StatusOr<ProcessId> child = Spawn(
        {.argv = {options_.worker_program, absl::StrCat("--config=", directory_, "/worker.conf")},
         .working_directory = directory_,
         .output_path = JoinPath(directory_, "agent.log"),
         .new_session = true});
    if (!child.ok()) return std::string(child.status().message());
    const absl::Status written =
        WriteFileAtomic(pid_path, absl::StrCat(child->pid, " ", child->start_ticks, "\n"));
    if (!written.ok()) LOG(WARNING) << "agent pid file: " << written.message();
    LOG(INFO) << "agent started worker=" << worker_ << " pid=" << child->pid;
    AnnounceRunning(*child);
    absl::StatusOr<int> code = 0;
    AwaitEndOrKill(*child, [&] { code = WaitForExit(*child, absl::InfiniteDuration()); });
    return code.ok() ? absl::StrCat("exit code ", *code) : std::string(code.status().message());
  }

  // Runs `wait`; meanwhile a second thread kills the agent if it was asked to stop and did not
  // within the grace.
  template <typename Wait>
  void AwaitEndOrKill(const ProcessId& process, Wait wait) {
    std::thread killer([this, process] {
      MutexLock lock(&mutex_);
      while (!is_stopping_ && !has_ended_)
        changed_.Wait(&mutex_);
      const absl::Time deadline = absl::Now() + options_.stop_grace;
      while (!has_ended_ && absl::Now() < deadline)
        changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(deadline - absl::Now()));
      if (!has_ended_) static_cast<void>(SignalGroup(process, SIGKILL));
    });
    wait();
    {
      MutexLock lock(&mutex_);
      has_ended_ = true;
      changed_.NotifyAll();
    }
    killer.join();
  }

  void AnnounceRunning(const ProcessId& process) {
    MutexLock lock(&mutex_);
    process_ = process;
    has_ended_ = false;
    info_.state = AgentState::kRunning;
    info_.pid = process.pid;
    // A stop asked for between the check and the start found nothing to signal.
    if (is_stopping_) static_cast<void>(SignalGroup(process, SIGTERM));
  }

  // Waits before the next start. False if there shall be none.
  bool PauseAfter(const std::string& end, absl::Duration pause) {
    MutexLock lock(&mutex_);
    info_.pid = 0;
    info_.last_end = end;
    info_.state = is_stopping_ ? AgentState::kStopped : AgentState::kWaiting;
    if (is_stopping_) return false;
    LOG(WARNING) << "agent ended worker=" << worker_ << " end=" << Quoted(end)
                 << " next_start_in=" << absl::FormatDuration(pause)
                 << " log=" << JoinPath(directory_, "agent.log");
    const absl::Time deadline = absl::Now() + pause;
    while (!is_stopping_ && absl::Now() < deadline)
      changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(deadline - absl::Now()));
    if (is_stopping_) info_.state = AgentState::kStopped;
    ++info_.restart_count;
    return !is_stopping_;
  }

  const std::string worker_;
  const LocalOptions& options_;  // of the launcher, which outlives its agents
  const std::string directory_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  ProcessId process_ ABSL_GUARDED_BY(mutex_);
  AgentInfo info_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: starts when all else is there
};

LocalLauncher::LocalLauncher(LocalOptions options) : options_(std::move(options)) {}

LocalLauncher::~LocalLauncher() {
  MutexLock lock(&mutex_);
  // All at once, so that the graces do not add up.
  for (const auto& [name, agent] : agents_)
    agent->RequestStop();
  agents_.clear();
}

absl::Status LocalLauncher::CheckCanHold(const core::Allocation& allocation) {
  if (access(options_.worker_program.c_str(), X_OK) != 0)
    return absl::NotFoundError(
        absl::StrCat("cannot run ", options_.worker_program,
                     ": install it there, or name it in launcher.worker_program"));
  MutexLock lock(&mutex_);
  if (!held_.is_none() && held_ != allocation.id)
    return absl::FailedPreconditionError(
        absl::StrCat("this host's agents are of allocation ", held_.ToString()));
  held_ = allocation.id;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Grant>> LocalLauncher::Acquire(const core::Allocation& allocation) {
  RETURN_IF_ERROR(CheckCanHold(allocation));
  const size_t wanted = static_cast<size_t>(std::max(allocation.spec.node_count, 1));
  Grant grant;
  for (size_t i = 0; i < std::min(wanted, options_.cores.size()); ++i) {
    LaunchRequest request = {.worker = absl::StrCat("local-", i),
                             .server_address = options_.server_address,
                             .ca_pem = options_.ca_pem,
                             .cores = options_.cores[i],
                             .labels = allocation.spec.labels};
    request.labels[std::string(core::kAllocationLabel)] = allocation.id.ToString();
    ASSIGN_OR_RETURN(request.enrolment_token, options_.make_enrolment_token(request.worker));
    RETURN_IF_ERROR(Start(request));
    grant.workers.push_back(request.worker);
  }
  return grant;
}

absl::StatusOr<bool> LocalLauncher::Release(core::AllocationId allocation) {
  {
    MutexLock lock(&mutex_);
    if (!held_.is_none() && held_ != allocation) return true;
  }
  StopAll();
  MutexLock lock(&mutex_);
  held_ = {};
  return true;
}

absl::Status LocalLauncher::Start(const LaunchRequest& request) {
  MutexLock lock(&mutex_);
  if (agents_.contains(request.worker)) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(WriteAgentFiles(request, JoinPath(options_.directory, request.worker)),
                           request.worker));
  agents_[request.worker] = std::make_unique<Agent>(request.worker, options_);
  return absl::OkStatus();
}

void LocalLauncher::StopAll() {
  {
    MutexLock lock(&mutex_);
    for (const auto& [name, agent] : agents_)
      agent->RequestStop();
    agents_.clear();
  }
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(options_.directory);
  if (!names.ok()) return;  // none was ever started
  for (const std::string& name : *names)
    StopOrphan(JoinPath(options_.directory, name), options_.stop_grace);
}

std::vector<AgentInfo> LocalLauncher::Describe() const {
  MutexLock lock(&mutex_);
  std::vector<AgentInfo> infos;
  for (const auto& [name, agent] : agents_)
    infos.push_back(agent->Describe());
  return infos;
}

}  // namespace assay::launch
