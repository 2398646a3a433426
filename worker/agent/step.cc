#include "worker/agent/step.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "assay/v1/config.pb.h"
#include "assay/v1/run_spec.pb.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "common/mllog.h"
#include "common/status.h"
#include "worker/agent/account.h"
#include "worker/agent/directory_watch.h"
#include "worker/agent/isolation.h"
#include "worker/agent/log_witness.h"
#include "worker/agent/materials.h"
#include "worker/agent/text_proto.h"
#include "worker/agent/touch_monitor.h"
#include "worker/agent/trainer_group.h"
#include "worker/agent/workload/workload.h"

namespace assay::agent {
namespace {

// A poll that waits for no deadline still wakes up now and then: nothing depends on it.
constexpr absl::Duration kPollMax = absl::Minutes(1);
constexpr absl::Duration kRunTimeoutDefault = absl::Hours(24);
constexpr absl::Duration kRunTimeoutMax = absl::Hours(24 * 366);
constexpr absl::Duration kLeavePatience = absl::Hours(2);  // the slowest node's staging
constexpr size_t kPausesMax = 100;  // that are written down; the rest would say the same
constexpr char kStopReason[] = "stopped on request";

StepExit ExitFor(ExitCode code, absl::string_view reason) {
  return StepExit{static_cast<int>(code), std::string(reason)};
}

StepExit ExitFor(ExitCode code, const absl::Status& status) {
  return ExitFor(code, status.message());
}

// SIGTERM, SIGINT and what children do as a descriptor. They stay blocked in this process; Spawn
// clears the mask for children.
absl::StatusOr<UniqueFd> BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGCHLD);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return absl::ErrnoToStatus(errno, "sigprocmask");
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, "signalfd");
  return fd;
}

bool HasStopSignal(int signal_fd) {
  bool is_stop = false;
  signalfd_siginfo info{};
  while (read(signal_fd, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info)))
    is_stop = is_stop || info.ssi_signo != SIGCHLD;
  return is_stop;
}

// Watches the processes until all have ended.
class Supervisor {
 public:
  struct Limits {
    absl::Duration run_timeout;
    absl::Duration grace;
  };
  Supervisor(TrainerGroup* group, const Workload* workload, std::optional<TouchMonitor>* monitor,
             std::optional<LogWitness>* log, int signal_fd, const RunDirectory* directory,
             const Clock* clock)
      : group_(group),
        workload_(workload),
        monitor_(monitor),
        log_(log),
        signal_fd_(signal_fd),
        directory_(directory),
        clock_(clock) {}

  absl::StatusOr<StepExit> Run(const Limits& limits) {
    limits_ = limits;
    deadline_ = clock_->Mono() + limits.run_timeout;
    while (group_->running_count() > 0) {
      WaitForSomething();
      RecordArrivals(/*is_final=*/false);
      RETURN_IF_ERROR(RecordTouch());
      if (HasStopSignal(signal_fd_)) Stop(ExitFor(ExitCode::kTerminated, kStopReason));
      RETURN_IF_ERROR(group_->Observe());
      RETURN_IF_ERROR(RecordPauses());
      if (group_->first_failure().has_value()) Stop(workload_->Read(*group_->first_failure()));
      RETURN_IF_ERROR(EnforceDeadlines());
    }
    RETURN_IF_ERROR(RecordTouch());  // it may have come together with the end
    RecordArrivals(/*is_final=*/true);
    return Outcome();
  }

 private:
  void WaitForSomething() const {
    std::vector<pollfd> entries{{signal_fd_, POLLIN, 0}};
    if (monitor_->has_value() && (*monitor_)->fd() >= 0)
      entries.push_back({(*monitor_)->fd(), POLLIN, 0});
    if (log_->has_value()) entries.push_back({(*log_)->fd(), POLLIN, 0});
    for (const int fd : group_->ExitFds())
      entries.push_back({fd, POLLIN, 0});
    const MonoTime next = kill_at_.has_value() ? *kill_at_ : deadline_;
    const absl::Duration left =
        std::clamp(next - clock_->Mono(), absl::ZeroDuration(), kPollMax) + absl::Milliseconds(1);
    poll(entries.data(), entries.size(), static_cast<int>(absl::ToInt64Milliseconds(left)));
  }

  // The clock of a run goes on while a rank stands still; what looks like a slow epoch was one.
  absl::Status RecordPauses() {
    bool is_changed = false;
    for (const RankStop& stop : group_->TakeStops()) {
      const Stamp now = StampNow(*clock_);
      const auto open = std::find_if(pauses_.begin(), pauses_.end(), [&stop](const Pause& pause) {
        return pause.rank == stop.rank && !pause.end.has_value();
      });
      if (open != pauses_.end()) {
        if (!stop.is_stopped) open->end = now;
      } else if (pauses_.size() < kPausesMax) {
        pauses_.push_back({stop.rank, now, stop.is_stopped ? std::nullopt : std::optional(now)});
      }
      is_changed = true;
    }
    return is_changed ? directory_->WritePauses(pauses_) : absl::OkStatus();
  }

  absl::Status RecordTouch() {
    if (!monitor_->has_value()) return absl::OkStatus();
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<Touch> touch, (*monitor_)->Poll());
      if (!touch.has_value()) return absl::OkStatus();
      RETURN_IF_ERROR(directory_->WriteTouch(*touch));
    }
  }

  // A log that shrinks is the coordinator's to judge: no record of it matches any more.
  void RecordArrivals(bool is_final) {
    if (!log_->has_value()) return;
    const absl::Status status = (*log_)->Observe(is_final);
    if (status.ok()) return;
    LOG(ERROR) << "the log is not watched any more: " << status;
    log_->reset();
  }

  // The first reason counts.
  void Stop(StepExit cause) {
    if (cause_.has_value()) return;
    LOG(INFO) << "stopping trainers reason=" << Quoted(cause.reason);
    cause_ = std::move(cause);
    kill_at_ = clock_->Mono() + limits_.grace;
    absl::Status status = group_->Signal(SIGTERM);
    if (!status.ok()) LOG(ERROR) << status;
    // The agent, if it is told to leave, waits for what comes of it.
    status = WriteFileAtomic(directory_->StoppingPath(), "", kPrivateFile);
    if (!status.ok()) LOG(ERROR) << status;
  }

  absl::Status EnforceDeadlines() {
    const MonoTime now = clock_->Mono();
    if (!cause_.has_value() && now >= deadline_) {
      Stop(ExitFor(ExitCode::kTerminated,
                   absl::StrCat("the run's time limit of ",
                                absl::FormatDuration(limits_.run_timeout), " has passed")));
    }
    if (!kill_at_.has_value() || now < *kill_at_) return absl::OkStatus();
    kill_at_ = now + limits_.grace;
    return group_->Signal(SIGKILL);
  }

  StepExit Outcome() const {
    // A stop that came when all had done their work changes nothing.
    if (!group_->first_failure().has_value())
      return ExitFor(ExitCode::kOk, Describe(ExitCode::kOk));
    return *cause_;
  }

  TrainerGroup* const group_;
  const Workload* const workload_;
  std::optional<TouchMonitor>* const monitor_;
  std::optional<LogWitness>* const log_;
  const int signal_fd_;
  const RunDirectory* const directory_;
  const Clock* const clock_;
  Limits limits_;
  MonoTime deadline_;
  std::optional<MonoTime> kill_at_;
  std::optional<StepExit> cause_;
  std::vector<Pause> pauses_;
};

class Step {
 public:
  Step(const RunDirectory* directory, const StepOptions* options, const Clock* clock)
      : directory_(directory), options_(options), clock_(clock) {}

  // Never fails: what goes wrong is an exit.
  StepExit Run(int signal_fd) {
    const absl::Status loaded = Load();
    if (!loaded.ok()) return ExitFor(ExitCode::kBadSpec, loaded);
    if (FileExists(directory_->StopPath())) return ExitFor(ExitCode::kTerminated, kStopReason);
    const absl::Status made = MakeRoomForRanks();
    if (!made.ok()) return ExitFor(ExitCode::kNodeFailed, made);
    const absl::Status staged = MakeStageDirectory();
    if (!staged.ok()) return ExitFor(ExitCode::kDisk, staged);
    const absl::StatusOr<CacheReset> reset =
        ResetCaches(spec_.dataset().path(), options_->drop_caches_path);
    if (!reset.ok()) return ExitFor(ExitCode::kBadData, reset.status());
    const absl::Status logged = LogCacheClear(*reset);
    if (!logged.ok()) return ExitFor(ExitCode::kDisk, logged);
    const absl::Status armed = ArmMonitor();
    if (!armed.ok()) return ExitFor(ExitCode::kBadData, armed);
    const std::optional<StepExit> unstarted = AwaitLeave(signal_fd);
    if (unstarted.has_value()) return *unstarted;
    const absl::Status witnessed = ArmLogWitness();
    if (!witnessed.ok()) return ExitFor(ExitCode::kDisk, witnessed);
    const StepExit exit = Train(signal_fd);
    EmptyStageDirectory();
    return exit;
  }

 private:
  absl::Status Load() {
    RETURN_IF_ERROR(LoadTextProto(directory_->SpecPath(), &spec_));
    RETURN_IF_ERROR(LoadTextProto(directory_->WorkerPath(), &worker_));
    ASSIGN_OR_RETURN(workload_, MakeWorkload(spec_, *directory_));
    return absl::OkStatus();
  }

  // All that ranks may write is made before they start, so that the directory itself need not be
  // theirs.
  absl::Status MakeRoomForRanks() {
    ASSIGN_OR_RETURN(user_, FindRunUser(worker_));
    ASSIGN_OR_RETURN(step_user_, FindStepUser(worker_, user_));
    RETURN_IF_ERROR(workload_->Prepare());
    RETURN_IF_ERROR(workload_->Check(worker_));
    RETURN_IF_ERROR(GrantPassage(directory_->path(), user_));
    RETURN_IF_ERROR(GiveTo(step_user_, directory_->WitnessDirectory()));
    RETURN_IF_ERROR(MakeDirectories(directory_->RanksPath(), kPrivateDirectory));
    RETURN_IF_ERROR(GiveTo(user_, directory_->RanksPath()));
    if (spec_.node_rank() != 0 || !user_.has_value()) return absl::OkStatus();
    RETURN_IF_ERROR(WriteFileAtomic(directory_->ProgressPath(), "", kPrivateFile));
    return GiveTo(user_, directory_->ProgressPath());
  }

  std::string StagePath() const { return directory_->StagePath(worker_.stage_directory()); }

  // Below the dataset or its copy.
  std::vector<std::string> SampleFoldersOf(const std::string& root) const {
    std::vector<std::string> folders = workload_->SampleFolders();
    for (std::string& folder : folders)
      folder = JoinPath(root, folder);
    return folders;
  }

  absl::Status MakeStageDirectory() const {
    if (!spec_.dataset().is_staged()) return absl::OkStatus();
    if (!FileExists(worker_.stage_directory())) {
      RETURN_IF_ERROR(MakeDirectories(worker_.stage_directory()));
      RETURN_IF_ERROR(GrantPassage(worker_.stage_directory(), user_));
    }
    const std::string stage = StagePath();
    RETURN_IF_ERROR(RemoveTree(stage));
    for (const std::string& folder : SampleFoldersOf(stage)) {
      RETURN_IF_ERROR(MakeDirectories(folder, kPrivateDirectory));
      RETURN_IF_ERROR(ShareBetween(step_user_, user_, folder));
    }
    return ShareBetween(step_user_, user_, stage);
  }

  // The next run may need the room before this one is forgotten. What is left by then, such as the
  // directory itself where that is not the step's to remove, the agent removes.
  void EmptyStageDirectory() const {
    if (!spec_.dataset().is_staged()) return;
    for (const std::string& folder : SampleFoldersOf(StagePath())) {
      const absl::Status status = RemoveTree(folder);
      if (!status.ok()) LOG(WARNING) << status;
    }
    rmdir(StagePath().c_str());
  }

  absl::Status LogCacheClear(const CacheReset& reset) const {
    LOG(INFO) << "caches cleared method=" << reset.method << " files=" << reset.file_count;
    if (spec_.node_rank() != 0) return absl::OkStatus();
    const std::string path = directory_->ResultPath(spec_.run_number());
    const UniqueFd file(
        open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
    if (!file.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
    RETURN_IF_ERROR(GiveTo(user_, path));
    absl::Status status;
    MllogWriter writer([this] { return absl::ToUnixMillis(clock_->Wall()); },
                       [&](absl::string_view line) { status = WriteAll(file.get(), line); });
    JsonObject metadata{{"method", JsonValue(reset.method)}};
    if (reset.file_count > 0) metadata.emplace_back("file_count", JsonValue(reset.file_count));
    writer.Event("cache_clear", JsonValue(true), std::move(metadata));
    return Annotate(status, path);
  }

  // Where staging is not on the clock, the clock must start before the staged copy is read; where
  // it is, before the dataset itself is touched (HPC rules v3.0, "Timing"; ADR 0051).
  absl::Status ArmMonitor() {
    const bool is_copy_watched = spec_.dataset().is_staged() && !spec_.is_staging_timed();
    const std::string root = is_copy_watched ? StagePath() : spec_.dataset().path();
    absl::StatusOr<TouchMonitor> monitor =
        TouchMonitor::Arm(TouchMonitorOptions{.directories = SampleFoldersOf(root),
                                              .is_read_only = is_copy_watched,
                                              .is_fanotify_allowed = options_->is_fanotify_allowed},
                          clock_);
    if (monitor.ok()) {
      LOG(INFO) << "touch monitor armed mechanism=" << monitor->mechanism() << " root=" << root;
      monitor_ = *std::move(monitor);
      return absl::OkStatus();
    }
    if (monitor.status().code() == absl::StatusCode::kNotFound) return monitor.status();
    LOG(WARNING) << "the first touch will not be witnessed: " << monitor.status();
    return absl::OkStatus();
  }

  // Instances of a throughput set start together (HPC rules, "Throughput"): says that this one is
  // ready, and waits until all are. Returns how the run ends if that does not come.
  std::optional<StepExit> AwaitLeave(int signal_fd) const {
    if (!spec_.is_start_awaited()) return std::nullopt;
    absl::StatusOr<DirectoryWatch> watch = DirectoryWatch::Make(
        [](absl::string_view file) { return file == "leave" || file == "stop"; });
    absl::Status status = watch.ok() ? watch->Add(directory_->path()) : watch.status();
    if (status.ok()) status = WriteFileAtomic(directory_->ReadyPath(), "", kPrivateFile);
    if (!status.ok()) return ExitFor(ExitCode::kNodeFailed, status);
    const MonoTime deadline = clock_->Mono() + std::min(RunTimeout(), kLeavePatience);
    while (!FileExists(directory_->LeavePath())) {
      const absl::Duration left = deadline - clock_->Mono();
      if (left <= absl::ZeroDuration())
        return ExitFor(ExitCode::kTerminated,
                       absl::StrCat("the other instances of the set were not ready within ",
                                    absl::FormatDuration(kLeavePatience)));
      pollfd entries[] = {{signal_fd, POLLIN, 0}, {watch->fd(), POLLIN, 0}};
      poll(entries, std::size(entries),
           static_cast<int>(absl::ToInt64Milliseconds(std::min(left, kPollMax))) + 1);
      watch->Changed();
      if (FileExists(directory_->StopPath()) || HasStopSignal(signal_fd))
        return ExitFor(ExitCode::kTerminated, kStopReason);
    }
    return std::nullopt;
  }

  // The native trainer stamps its records itself as they come. Without a witness there are
  // findings; without who copies what is printed there would be no log.
  absl::Status ArmLogWitness() {
    if (!spec_.has_command() || spec_.node_rank() != 0) return absl::OkStatus();
    const std::string printed_path = workload_->LoggingOutputPath();
    absl::StatusOr<LogWitness> witness =
        LogWitness::Arm(directory_->ResultPath(spec_.run_number()), printed_path,
                        directory_->ArrivalsPath(), clock_);
    if (witness.ok()) {
      log_.emplace(*std::move(witness));
    } else if (!printed_path.empty()) {
      return witness.status();
    } else {
      LOG(WARNING) << "arrivals of the log will not be witnessed: " << witness.status();
    }
    return absl::OkStatus();
  }

  absl::Duration RunTimeout() const {
    if (spec_.run_timeout_ms() <= 0) return kRunTimeoutDefault;
    return std::min(absl::Milliseconds(spec_.run_timeout_ms()), kRunTimeoutMax);
  }

  StepExit Train(int signal_fd) {
    TrainerGroup group;
    absl::Status status = Start(&group);
    if (status.ok() && step_user_.has_value()) status = BecomeStep(*step_user_, *user_);
    StepExit exit = ExitFor(ExitCode::kNodeFailed, status);
    if (status.ok()) {
      Supervisor supervisor(&group, workload_.get(), &monitor_, &log_, signal_fd, directory_,
                            clock_);
      absl::StatusOr<StepExit> outcome = supervisor.Run(
          {.run_timeout = RunTimeout(), .grace = workload_->StopGrace().value_or(options_->grace)});
      exit = outcome.ok() ? *std::move(outcome) : ExitFor(ExitCode::kNodeFailed, outcome.status());
    }
    const absl::Status ended = group.End();
    if (!ended.ok()) LOG(ERROR) << ended;
    return exit;
  }

  // Keeps programs that are not ours from what is not theirs, and writes down how.
  absl::StatusOr<std::optional<Sandbox>> IsolatePrograms() const {
    const std::optional<Sight> sight = workload_->Sees(worker_);
    if (!sight.has_value()) return std::optional<Sandbox>();
    ASSIGN_OR_RETURN(
        const Isolated isolated,
        Isolate(worker_, user_, *sight, options_->hold_program, directory_->Path("sandbox.log")));
    RETURN_IF_ERROR(WriteFileAtomic(directory_->MaterialsPath(),
                                    MaterialsJson(spec_, isolated.how, options_->version),
                                    kPrivateFile));
    return isolated.sandbox;
  }

  absl::Status Start(TrainerGroup* group) {
    ASSIGN_OR_RETURN(const std::optional<Sandbox> sandbox, IsolatePrograms());
    const StartContext context{
        .listener_fd = options_->listener_fd,
        .deadline_unix_ms = absl::ToUnixMillis(clock_->Wall() + RunTimeout())};
    for (RankCommand& command : workload_->Commands(worker_, context)) {
      for (const InputFile& input : command.inputs) {
        RETURN_IF_ERROR(WriteFileAtomic(input.path, input.content, kPrivateFile));
        RETURN_IF_ERROR(GiveTo(user_, input.path));
      }
      command.is_in_sandbox = sandbox.has_value();
      command.argv = sandbox.has_value() ? AsRankIn(sandbox->first_process(), user_, command.argv)
                                         : AsRank(user_, command.argv);
      if (command.is_environment_whole) {
        command.environment = AsWholeEnvironment(command.environment);
      } else if (user_.has_value()) {
        command.environment.push_back(absl::StrCat("HOME=", directory_->RanksPath()));
      }
      RETURN_IF_ERROR(group->Start(command));
    }
    return directory_->WriteProcesses(directory_->TrainersPath(), group->processes());
  }

  const RunDirectory* const directory_;
  const StepOptions* const options_;
  const Clock* const clock_;
  v1::RunSpec spec_;
  v1::WorkerConfig worker_;
  std::unique_ptr<const Workload> workload_;
  std::optional<Account> user_;       // of the ranks; none: ours
  std::optional<Account> step_user_;  // of this process once they have started; none: as before
  std::optional<TouchMonitor> monitor_;
  std::optional<LogWitness> log_;  // of somebody else's program
};

// Locks the directory for this process's life, or returns a closed descriptor if another holds it.
absl::StatusOr<UniqueFd> TryLock(const RunDirectory& directory) {
  UniqueFd fd(
      open(directory.LockPath().c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open())
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", directory.LockPath()));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) return UniqueFd();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", directory.LockPath()));
}

absl::Status RunLocked(const RunDirectory& directory, const StepOptions& options,
                       const Clock* clock) {
  ASSIGN_OR_RETURN(const UniqueFd lock, TryLock(directory));
  if (!lock.is_open()) return absl::OkStatus();  // another step is at work
  if (FileExists(directory.StepPath()) || FileExists(directory.ExitPath()))
    return absl::OkStatus();  // a run starts at most once
  ASSIGN_OR_RETURN(const UniqueFd signals, BlockSignals());
  ASSIGN_OR_RETURN(const ProcessId self, IdentifyProcess(getpid()));
  // What ranks leave behind stays below this process, where a touch is told to be theirs and from
  // where it is ended.
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return absl::ErrnoToStatus(errno, "prctl");
  RETURN_IF_ERROR(directory.WriteProcesses(directory.StepPath(), {self}));
  const StepExit exit = Step(&directory, &options, clock).Run(signals.get());
  LOG(INFO) << "step ended code=" << exit.code << " reason=" << Quoted(exit.reason);
  return directory.WriteExit(exit, StampNow(*clock));
}

}  // namespace

int RunStep(const RunDirectory& directory, const StepOptions& options, const Clock* clock) {
  const absl::Status status = RunLocked(directory, options, clock);
  if (!status.ok()) LOG(ERROR) << "step failed: " << status;
  return status.ok() ? 0 : 1;
}

}  // namespace assay::agent
