#include "cli/coordinator/dev_coordinator.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

#include "cli/command/share.h"
#include "cli/coordinator/dev_site.h"
#include "cli/coordinator/init.h"
#include "common/client/watch.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(30);
constexpr absl::Duration kStopGrace = absl::Seconds(20);
constexpr absl::Duration kGlance = absl::Milliseconds(250);  // between looks at child and Ctrl-C
constexpr uint16_t kDefaultPort = 7443;
constexpr uint16_t kDefaultSitePort = 8443;
constexpr absl::Duration kKeyLifetime = absl::Hours(24 * 30);

// A loopback port that is free now: `preferred`, or any.
absl::StatusOr<uint16_t> FreePort(uint16_t preferred) {
  for (const uint16_t wanted : {preferred, uint16_t{0}}) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(wanted);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(fd.get(), generic, size) != 0) continue;
    if (getsockname(fd.get(), generic, &size) == 0) return ntohs(address.sin_port);
  }
  return absl::UnavailableError("no TCP port on 127.0.0.1 is free");
}

// Where the numbers of running programs are kept.
constexpr char kCoordinatorPid[] = "assayd.pid";
constexpr char kSitePid[] = "assay-web.pid";

absl::Status WritePid(const std::string& directory, const char* name, const ProcessId& process) {
  return WriteFileAtomic(JoinPath(directory, name),
                         absl::StrCat(process.pid, " ", process.start_ticks, "\n"));
}

// The program that an earlier command left in `directory`, if it still runs.
std::optional<ProcessId> RunningIn(const std::string& directory, const char* name) {
  const absl::StatusOr<std::string> text = ReadFile(JoinPath(directory, name));
  if (!text.ok()) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(*text, ' ');
  ProcessId process;
  int64_t pid = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[0], &pid) ||
      !absl::SimpleAtoi(fields[1], &process.start_ticks))
    return std::nullopt;
  process.pid = static_cast<pid_t>(pid);
  return IsRunning(process) ? std::optional<ProcessId>(process) : std::nullopt;
}

std::string LogTail(const std::string& directory) {
  constexpr size_t kLines = 5;
  constexpr int64_t kLogBytesMax = int64_t{1} << 30;
  const std::string text = ReadFile(JoinPath(directory, "assayd.log"), kLogBytesMax).value_or("");
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.size() > kLines) lines.erase(lines.begin(), lines.end() - kLines);
  return absl::StrJoin(lines, "\n  ");
}

}  // namespace

absl::StatusOr<std::string> PrepareDevDirectory(const Environment& environment) {
  const std::string directory = environment.RuntimeDirectory();
  constexpr int kOwnerOnly = 0700;
  if (mkdir(directory.c_str(), kOwnerOnly) != 0 && errno != EEXIST)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", directory));
  struct stat info = {};
  if (lstat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
      (info.st_mode & 0077U) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(directory,
                     " is not a directory of yours with mode 0700; keys will not be put "
                     "there: remove it, or set XDG_RUNTIME_DIR"));
  }
  return directory;
}

absl::Status DevCoordinator::Spawn(Context* context, int worker_count, DevLife life) {
  const Environment& env = context->env();
  InitOptions options{.directory = directory_};
  ASSIGN_OR_RETURN(const uint16_t port, FreePort(kDefaultPort));
  listen_address_ = absl::StrCat("127.0.0.1:", port);
  options.host_names = {"localhost", "127.0.0.1"};
  options.listen_address = listen_address_;
  options.server_address = listen_address_;
  options.data_directory = JoinPath(directory_, "data");
  options.unix_socket_path = JoinPath(directory_, "assayd.sock");
  ASSIGN_OR_RETURN(const std::string rounds, ShareDirectory(env, "rounds"));
  ASSIGN_OR_RETURN(options.round_paths, FilesIn(rounds, ".toml"));
  options.local_worker_count = worker_count;
  ASSIGN_OR_RETURN(options.worker_program, SiblingProgram(env, "assay-worker"));
  options.now = env.clock->Wall();
  options.lifetime = kKeyLifetime;
  if (SiblingProgram(env, "assay-web").ok()) {
    ASSIGN_OR_RETURN(const uint16_t site_port, FreePort(kDefaultSitePort));
    site_address_ = absl::StrCat("127.0.0.1:", site_port);
    options.web_url = site_url();
  }
  RETURN_IF_ERROR(InitDirectory(options));
  RETURN_IF_ERROR(MakeDirectories(options.data_directory));

  ASSIGN_OR_RETURN(const std::string program, SiblingProgram(env, "assayd"));
  SpawnOptions spawn;
  spawn.argv = {program, "--config", JoinPath(directory_, "assayd.textproto")};
  if (life == DevLife::kEndsWithThis) spawn.argv.push_back(absl::StrCat("--end_with=", getpid()));
  spawn.output_path = JoinPath(directory_, "assayd.log");
  spawn.new_session = true;  // the terminal's Ctrl-C is for this program, which stops it in order
  ASSIGN_OR_RETURN(process_, assay::Spawn(spawn));
  is_running_ = true;
  endpoint_.target = absl::StrCat("unix:", options.unix_socket_path);
  ASSIGN_OR_RETURN(client_, client::Client::Connect(endpoint_));
  return WritePid(directory_, kCoordinatorPid, process_);
}

std::string DevCoordinator::site_url() const {
  return site_address_.empty() ? "" : absl::StrCat("https://", site_address_);
}

absl::Status DevCoordinator::StartSite(Context* context, DevLife life) {
  if (site_address_.empty()) {
    context->Note("no site: assay-web is not installed beside this program");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(site_process_, StartDevSite(*context, *client_,
                                               {.directory = directory_,
                                                .listen_address = site_address_,
                                                .server_address = listen_address_,
                                                .ends_with_this = life == DevLife::kEndsWithThis,
                                                .lifetime = kKeyLifetime}));
  has_site_ = true;
  return WritePid(directory_, kSitePid, site_process_);
}

absl::Status DevCoordinator::Ended(int exit_code) const {
  return absl::InternalError(absl::StrCat("assayd ended with exit code ", exit_code,
                                          "; the end of its log:\n  ", LogTail(directory_)));
}

absl::Status DevCoordinator::WaitUntilReady(Context* context, int worker_count) {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  const Interrupt* interrupt = context->env().interrupt;
  while (!client_->WaitUntilReachable(absl::Now() + kGlance)) {
    ASSIGN_OR_RETURN(const std::optional<int> exit_code, PollExit(process_));
    if (exit_code.has_value()) {
      is_running_ = false;
      return Ended(*exit_code);
    }
    if (interrupt->IsRaised()) return absl::CancelledError("interrupted");
    if (absl::Now() >= deadline)
      return absl::DeadlineExceededError(
          absl::StrCat("assayd does not answer after ", absl::FormatDuration(kStartTimeout),
                       "; the end of its log:\n  ", LogTail(directory_)));
  }
  // Every change at the coordinator is a reason to count again.
  client::EntryWatcher watcher(client_.get(), context->env().interrupt, "");
  while (true) {
    ASSIGN_OR_RETURN(const v1::ListWorkersResponse workers,
                     client_->Call(v1::ListWorkersRequest()));
    const auto alive =
        std::count_if(workers.workers().begin(), workers.workers().end(),
                      [](const v1::Worker& worker) { return worker.state() == v1::Worker::ALIVE; });
    if (alive >= worker_count) return absl::OkStatus();
    if (interrupt->IsRaised()) return absl::CancelledError("interrupted");
    if (absl::Now() >= deadline)
      return absl::DeadlineExceededError(
          absl::StrCat("only ", alive, " of ", worker_count, " workers have joined after ",
                       absl::FormatDuration(kStartTimeout), "; the end of assayd's log:\n  ",
                       LogTail(directory_)));
    watcher.Next(absl::Seconds(1));
  }
}

absl::StatusOr<std::unique_ptr<DevCoordinator>> DevCoordinator::Start(Context* context,
                                                                      int worker_count,
                                                                      DevLife life) {
  std::unique_ptr<DevCoordinator> dev(new DevCoordinator);
  ASSIGN_OR_RETURN(const std::string directory, PrepareDevDirectory(context->env()));
  if (RunningIn(directory, kCoordinatorPid).has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a private coordinator runs already in ", directory,
                     "; use it, or end it with 'assay dev --stop'"));
  }
  // What a killed one has left behind.
  RETURN_IF_ERROR(RemoveTree(directory));
  ASSIGN_OR_RETURN(dev->directory_, PrepareDevDirectory(context->env()));
  RETURN_IF_ERROR(dev->Spawn(context, worker_count, life));
  RETURN_IF_ERROR(dev->WaitUntilReady(context, worker_count));
  RETURN_IF_ERROR(dev->StartSite(context, life));
  return dev;
}

DevCoordinator::~DevCoordinator() {
  if (is_detached_) return;
  if (has_site_) StopGroup(site_process_, kStopGrace).IgnoreError();
  if (is_running_) StopGroup(process_, kStopGrace).IgnoreError();
  if (!directory_.empty()) RemoveTree(directory_).IgnoreError();
}

absl::Status DevCoordinator::WaitForEnd(Interrupt* interrupt) {
  // Streams of the coordinator end with it; Ctrl-C ends the wait.
  client::EntryWatcher watcher(client_.get(), interrupt, "");
  while (true) {
    const client::EntryWatcher::News news = watcher.Next(absl::Seconds(1));
    if (news.is_cancelled) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::optional<int> exit_code, PollExit(process_));
    if (!exit_code.has_value()) continue;
    is_running_ = false;
    return Ended(*exit_code);
  }
}

namespace {

// Ends `process`, which is no child of this one: a pidfd becomes readable when it has.
absl::Status StopOther(const ProcessId& process) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  RETURN_IF_ERROR(SignalGroup(process, SIGTERM));
  pollfd wait = {pidfd.get(), POLLIN, 0};
  if (poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(kStopGrace))) != 0)
    return absl::OkStatus();
  return SignalGroup(process, SIGKILL);
}

}  // namespace

absl::Status StopDevCoordinator(const Environment& environment) {
  const std::string directory = environment.RuntimeDirectory();
  const std::optional<ProcessId> site = RunningIn(directory, kSitePid);
  if (site.has_value()) RETURN_IF_ERROR(StopOther(*site));
  const std::optional<ProcessId> process = RunningIn(directory, kCoordinatorPid);
  if (!process.has_value() && !site.has_value())
    return absl::NotFoundError(absl::StrCat("no private coordinator runs in ", directory));
  if (process.has_value()) RETURN_IF_ERROR(StopOther(*process));
  return RemoveTree(directory);
}

}  // namespace assay::cli
