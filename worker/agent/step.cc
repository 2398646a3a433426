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
#include <cstdlib>
#include <filesystem>
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
#include "common/status.h"
#include "worker/agent/account.h"
#include "worker/agent/cold_start.h"
#include "worker/agent/control_group.h"
#include "worker/agent/directory_watch.h"
#include "worker/agent/entrants.h"
#include "worker/agent/image_store.h"
#include "worker/agent/isolation.h"
#include "worker/agent/log_witness.h"
#include "worker/agent/materials.h"
#include "worker/agent/meter_options.h"
#include "worker/agent/reader_gate.h"
#include "worker/agent/stage_area.h"
#include "worker/agent/supervisor.h"
#include "worker/agent/telemetry/sampler.h"
#include "worker/agent/text_proto.h"
#include "worker/agent/touch_monitor.h"
#include "worker/agent/trainer_group.h"
#include "worker/agent/workload/workload.h"

namespace assay::agent {
namespace {

constexpr absl::Duration kRunTimeoutDefault = absl::Hours(24);
constexpr absl::Duration kRunTimeoutMax = absl::Hours(24 * 366);
constexpr absl::Duration kLeavePatience = absl::Hours(2);  // the slowest node's staging
// For a launcher's processes: those of other nodes wait for the slowest node's caches.
constexpr absl::Duration kEntryPatience = absl::Minutes(10);
constexpr int kProcessCountMax = 32'768;  // unless the configuration says otherwise

// SIGTERM, SIGINT and what children do as a descriptor. They stay blocked in this process; Spawn
// clears the mask for children.
absl::StatusOr<UniqueFd> BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD})
    sigaddset(&set, signal);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return absl::ErrnoToStatus(errno, "sigprocmask");
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, "signalfd");
  return fd;
}

std::string SelfPath() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

ExitCode CodeOfImage(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
      return ExitCode::kTerminated;
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kDisk;
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kNodeFailed;
    default:
      return ExitCode::kBadData;
  }
}

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
    const absl::Status unpacked = UnpackImage(signal_fd);
    if (!unpacked.ok()) return ExitFor(CodeOfImage(unpacked), unpacked);
    const absl::Status staged = MakeStageArea(signal_fd);
    if (!staged.ok())
      return ExitFor(absl::IsCancelled(staged) ? ExitCode::kTerminated : ExitCode::kDisk, staged);
    const std::optional<StepExit> refused = ClearCaches();
    if (refused.has_value()) return *refused;
    const absl::Status armed = ArmMonitor();
    if (!armed.ok()) return ExitFor(ExitCode::kBadData, armed);
    const std::optional<StepExit> unstarted = AwaitLeave(signal_fd);
    if (unstarted.has_value()) return *unstarted;
    HoldReaders();
    const absl::Status witnessed = ArmLogWitness();
    if (!witnessed.ok()) return ExitFor(ExitCode::kDisk, witnessed);
    const StepExit exit = Train(signal_fd);
    if (stage_.has_value()) stage_->Empty();
    return exit;
  }

 private:
  absl::Status Load() {
    RETURN_IF_ERROR(LoadTextProto(directory_->SpecPath(), &spec_));
    RETURN_IF_ERROR(LoadTextProto(directory_->WorkerPath(), &worker_));
    spec_.set_node_cache(CachedFilesOf(spec_, worker_));
    ASSIGN_OR_RETURN(workload_, MakeWorkload(spec_, *directory_));
    return absl::OkStatus();
  }

  // All that ranks may write is made before they start: the directory itself need not be theirs.
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

  // Before the caches are reset, which what is unpacked goes through.
  absl::Status UnpackImage(int signal_fd) {
    const v1::ImageFile* const image = workload_->Image();
    if (image == nullptr) return absl::OkStatus();
    ImageStore store(JoinPath(worker_.data_directory(), kImagesFolder), user_);
    ASSIGN_OR_RETURN(image_,
                     store.Open(*image, [this, signal_fd] { return IsStopped(signal_fd); }));
    return absl::OkStatus();
  }

  bool IsStopped(int signal_fd) const {
    return FileExists(directory_->StopPath()) || HasStopSignal(signal_fd);
  }

  std::string StagePath() const { return directory_->StagePath(worker_.stage_directory()); }

  // Below the dataset or its copy.
  std::vector<std::string> SampleFoldersOf(const std::string& root) const {
    return SampleFoldersBelow(*workload_, root);
  }

  // With what the node's cache has, before the caches are reset and anybody looks.
  absl::Status MakeStageArea(int signal_fd) {
    if (!spec_.dataset().is_staged()) return absl::OkStatus();
    stage_.emplace(StageAreaOptions{.path = StagePath(),
                                    .parent = worker_.stage_directory(),
                                    .sample_folders = SampleFoldersOf(StagePath()),
                                    .user = user_,
                                    .step_user = step_user_});
    return stage_->Make(
        spec_, worker_, [this, signal_fd] { return IsStopped(signal_fd); }, *clock_);
  }

  std::string HelperSocket() const {
    const std::string& socket = worker_.privileged_socket();
    return socket.empty() ? privileged::kSocketPath : socket;
  }

  std::optional<StepExit> ClearCaches() {  // returns how the run ends if it may not start
    absl::StatusOr<ColdStart> cold =
        MakeCold({.dataset_directory = spec_.dataset().path(),
                  .sample_folders = SampleFoldersOf(spec_.dataset().path()),
                  .drop_caches_path = options_->drop_caches_path,
                  .helper_socket = HelperSocket(),
                  .residency = {.seed = RandomSeed()}},
                 *clock_);
    if (!cold.ok()) return ExitFor(ExitCode::kBadData, cold.status());
    dataset_bytes_ = cold->residency.EstimatedBytes();
    if (stage_.has_value()) cold->node_cache = stage_->FromCache();
    absl::Status written = RecordColdStart(*cold, *directory_, StampNow(*clock_));
    std::optional<StepExit> refused = RefusalOf(*cold, spec_.division());
    if (written.ok() && !refused.has_value() && spec_.node_rank() == 0)
      written = LogCacheClear(*cold, directory_->ResultPath(spec_.run_number()), user_, *clock_);
    if (!written.ok()) return ExitFor(ExitCode::kDisk, written);
    return refused;
  }

  bool IsCopyWatched() const { return spec_.dataset().is_staged() && !spec_.is_staging_timed(); }
  std::string WatchedRoot() const { return IsCopyWatched() ? StagePath() : spec_.dataset().path(); }

  // Where staging is not on the clock, the clock must start before the staged copy is read; where
  // it is, before the dataset itself is touched (HPC rules v3.0, "Timing"; ADR 0051).
  absl::Status ArmMonitor() {
    const std::string root = WatchedRoot();
    absl::StatusOr<TouchMonitor> monitor =
        TouchMonitor::Arm(TouchMonitorOptions{.directories = SampleFoldersOf(root),
                                              .is_read_only = IsCopyWatched(),
                                              .is_fanotify_allowed = options_->is_fanotify_allowed,
                                              .helper_socket = HelperSocket(),
                                              .drop_caches_path = options_->drop_caches_path,
                                              .dataset_bytes = dataset_bytes_},
                          clock_);
    if (monitor.ok()) {
      LOG(INFO) << "touch monitor armed mechanism=" << monitor->mechanism()
                << " watched=" << Quoted(monitor->watched()) << " root=" << root;
      monitor_ = *std::move(monitor);
      return absl::OkStatus();
    }
    if (monitor.status().code() == absl::StatusCode::kNotFound) return monitor.status();
    LOG(WARNING) << "the first touch will not be witnessed: " << monitor.status();
    return absl::OkStatus();
  }

  // Last before ranks start: others of the node who read the dataset wait for its answers, too.
  void HoldReaders() {
    if (!monitor_.has_value() || !options_->is_fanotify_allowed) return;
    absl::StatusOr<ReaderGate> gate =
        ReaderGate::Close({.program = SelfPath(),
                           .directories = SampleFoldersOf(WatchedRoot()),
                           .are_copies = IsCopyWatched(),
                           .drop_caches_path = options_->drop_caches_path},
                          clock_);
    LOG(INFO) << "gate " << (gate.ok() ? "closed" : gate.status().ToString());
    monitor_->SetGate(std::move(gate));
  }

  // Instances of a throughput set start together (HPC rules, "Throughput"): says that this one is
  // ready, and waits until all are. Returns how the run ends if that does not come.
  std::optional<StepExit> AwaitLeave(int signal_fd) {
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
      if (monitor_.has_value()) monitor_->Look().IgnoreError();
      const int seen_fd = monitor_.has_value() ? monitor_->fd() : -1;  // -1: none to wait for
      pollfd entries[] = {{signal_fd, POLLIN, 0}, {watch->fd(), POLLIN, 0}, {seen_fd, POLLIN, 0}};
      poll(entries, std::size(entries),
           static_cast<int>(absl::ToInt64Milliseconds(std::min(left, kPollMax))) + 1);
      watch->Changed();
      if (IsStopped(signal_fd)) return ExitFor(ExitCode::kTerminated, kStopReason);
    }
    return std::nullopt;
  }

  // Without a witness there are findings; without who copies what is printed there would be no log.
  absl::Status ArmLogWitness() {
    if (spec_.node_rank() != 0) return absl::OkStatus();
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

  std::optional<absl::Duration> InitLimit() const {
    if (spec_.init_limit_ms() <= 0) return std::nullopt;
    return absl::Milliseconds(spec_.init_limit_ms());
  }

  StepExit Train(int signal_fd) {
    const Heartbeat heartbeat;
    const Telemetry telemetry(
        directory_->TelemetryPath(), directory_->ForeignPath(), directory_->FiguresPath(), BootId(),
        [] { return ReadClocks().NodeNs(); }, MeterOptionsOf(worker_));
    TrainerGroup group;
    std::optional<Entrants> entrants;
    absl::Status status = Start(&group, &entrants);
    if (status.ok() && !entrants.has_value()) status = GiveRootUp();
    StepExit exit = ExitFor(ExitCode::kNodeFailed, status);
    if (status.ok()) {
      Supervisor supervisor({.group = &group,
                             .workload = workload_.get(),
                             .monitor = &monitor_,
                             .log = &log_,
                             .entrants = &entrants,
                             .signal_fd = signal_fd,
                             .directory = directory_,
                             .heartbeat = &heartbeat,
                             .clock = clock_});
      absl::StatusOr<StepExit> outcome =
          supervisor.Run({.run_timeout = RunTimeout(),
                          .grace = workload_->StopGrace().value_or(options_->grace),
                          .entry_patience = kEntryPatience,
                          .init = InitLimit()});
      exit = outcome.ok() ? *std::move(outcome) : ExitFor(ExitCode::kNodeFailed, outcome.status());
    }
    if (control_group_.has_value()) {
      exit = Explained(std::move(exit));
      const absl::Status killed = control_group_->Kill();
      if (!killed.ok()) LOG(ERROR) << killed;
    }
    const absl::Status ended = group.End();
    if (!ended.ok()) LOG(ERROR) << ended;
    // Where this process gave its rights up the agent does.
    const absl::Status removed = RemoveRunGroup(*directory_);
    if (!removed.ok() && !absl::IsPermissionDenied(removed)) LOG(ERROR) << removed;
    return exit;
  }

  absl::Status GiveRootUp() const {
    return step_user_.has_value() ? BecomeStep(*step_user_, *user_) : absl::OkStatus();
  }

  // Keeps programs that are not ours from what is not theirs, and writes down how; once, before the
  // first of them starts. `writable`: what that one writes besides what all do.
  absl::Status IsolatePrograms(const std::vector<std::string>& writable) {
    if (is_isolated_) return absl::OkStatus();
    is_isolated_ = true;
    std::optional<Sight> sight = workload_->Sees(worker_);
    if (!sight.has_value()) return absl::OkStatus();
    if (image_.has_value()) sight->image_root = image_->root;
    sight->writable.insert(sight->writable.end(), writable.begin(), writable.end());
    ASSIGN_OR_RETURN(
        const Isolated isolated,
        Isolate(worker_, user_, *sight, options_->hold_program, directory_->Path("sandbox.log")));
    sandbox_ = isolated.sandbox;
    LimitPrograms();
    return WriteFileAtomic(directory_->MaterialsPath(),
                           MaterialsJson(spec_, isolated.how, HowLimited(), options_->version),
                           kPrivateFile);
  }

  // Where this node's agent may; they start without limits too.
  void LimitPrograms() {
    const int process_count_max = worker_.process_count_max();
    absl::StatusOr<ControlGroup> group = MakeRunGroup(
        *directory_,
        {.memory_mib = spec_.command().memory_mib(),
         .process_count_max = process_count_max > 0 ? process_count_max : kProcessCountMax});
    if (group.ok()) {
      control_group_.emplace(*std::move(group));
    } else {
      LOG(WARNING) << "memory and processes of programs are not limited: " << group.status();
    }
  }

  // As bills of materials say it.
  std::string HowLimited() const {
    if (control_group_.has_value()) return absl::StrCat("cgroup v", control_group_->version());
    return std::getenv("SLURM_JOB_ID") == nullptr ? "none" : "slurm";
  }

  // Who is killed for want of memory knows the signal alone.
  StepExit Explained(StepExit exit) const {
    const bool is_of_program =
        exit.code == static_cast<int>(ExitCode::kProgram) || exit.code > kSignalBase;
    if (is_of_program && control_group_->HasRunOutOfMemory())
      exit.reason = absl::StrCat("the program needed more than its memory_mib of ",
                                 spec_.command().memory_mib(), " MiB on node ", spec_.node_rank());
    return exit;
  }

  absl::Status Start(TrainerGroup* group, std::optional<Entrants>* entrants) {
    RETURN_IF_ERROR(workload_->Check(worker_));  // it was there before the caches were reset
    const StartContext context{
        .enter_program = SelfPath(),
        .entrance_name = EntranceName(spec_),
        .listener_fd = options_->listener_fd,
        .deadline_unix_ms = absl::ToUnixMillis(clock_->Wall() + RunTimeout())};
    const int count = workload_->EntrantCount();
    if (count > 0) {
      const uid_t account = user_.has_value() ? user_->uid : geteuid();
      ASSIGN_OR_RETURN(Entrance entrance,
                       Entrance::Open(context.entrance_name, spec_.node_rank(), account));
      entrants->emplace(std::move(entrance), count, [this, group, context](const Entrant& entrant) {
        return StartEntrant(entrant, context, group);
      });
    }
    for (RankCommand& command : workload_->Commands(worker_, context))
      RETURN_IF_ERROR(StartProcess(std::move(command), group));
    LOG(INFO) << "ranks started count=" << group->processes().size();
    return directory_->WriteProcesses(directory_->TrainersPath(), group->processes());
  }

  absl::Status StartEntrant(const Entrant& entrant, const StartContext& context,
                            TrainerGroup* group) {
    ASSIGN_OR_RETURN(RankCommand command, workload_->CommandOf(entrant, worker_, context));
    const absl::Status started = StartProcess(std::move(command), group);
    // That he is none of this run's was found before.
    if (absl::IsInvalidArgument(started)) return absl::InternalError(started.message());
    RETURN_IF_ERROR(started);
    RETURN_IF_ERROR(directory_->WriteProcesses(directory_->TrainersPath(), group->processes()));
    return ++entrant_count_ == workload_->EntrantCount() ? GiveRootUp() : absl::OkStatus();
  }

  absl::Status StartProcess(RankCommand command, TrainerGroup* group) {
    for (const InputFile& input : command.inputs) {
      RETURN_IF_ERROR(WriteFileAtomic(input.path, input.content, kPrivateFile));
      RETURN_IF_ERROR(GiveTo(user_, input.path));
    }
    const bool is_launcher = command.rank == kLauncherRank;
    if (!is_launcher) RETURN_IF_ERROR(IsolatePrograms(command.writable));
    command.is_in_sandbox = sandbox_.has_value() && !is_launcher;
    command.argv = command.is_in_sandbox ? AsRankIn(sandbox_->first_process(), user_, command.argv)
                                         : AsRank(user_, command.argv);
    if (control_group_.has_value() && !is_launcher)
      command.argv = AsMember(control_group_->folders(), command.argv);
    if (command.is_environment_whole) {
      command.environment = AsWholeEnvironment(command.environment);
    } else if (user_.has_value()) {
      command.environment.push_back(absl::StrCat("HOME=", directory_->RanksPath()));
    }
    return group->Start(command);
  }

  const RunDirectory* const directory_;
  const StepOptions* const options_;
  const Clock* const clock_;
  v1::RunSpec spec_;
  v1::WorkerConfig worker_;
  std::unique_ptr<const Workload> workload_;
  std::optional<Account> user_;       // of the ranks; none: ours
  std::optional<Account> step_user_;  // of this process once they have started; none: as before
  int64_t dataset_bytes_ = 0;
  std::optional<TouchMonitor> monitor_;
  std::optional<LogWitness> log_;  // on node 0
  bool is_isolated_ = false;
  std::optional<UnpackedImage> image_;
  std::optional<StageArea> stage_;             // if the dataset is staged
  std::optional<Sandbox> sandbox_;             // of somebody else's program, where there is one
  std::optional<ControlGroup> control_group_;  // of somebody else's program, where there may be one
  int entrant_count_ = 0;                      // of a launcher's processes, so far
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
  // What ranks leave behind stays below this process: there its touches are told, there it ends.
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
