#include "worker/agent/step_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/agent/control_group.h"
#include "worker/agent/preflight_record.h"
#include "worker/agent/text_proto.h"

namespace assay::agent {
namespace {

// A new directory survives a power cut only once its parent is on disk.
absl::Status SyncParent(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const UniqueFd fd(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open() || fsync(fd.get()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot sync ", parent));
  return absl::OkStatus();
}

// The trainers that a dead step left behind. Their group is theirs as long as one of them is.
void KillTrainers(const RunDirectory& directory) {
  const absl::StatusOr<ProcessRecord> record = directory.ReadProcesses(directory.TrainersPath());
  if (!record.ok() || record->processes.empty() || record->boot_id != BootId()) return;
  const bool is_any_running = std::any_of(record->processes.begin(), record->processes.end(),
                                          [](const ProcessId& p) { return IsRunning(p); });
  if (!is_any_running) return;
  LOG(WARNING) << "killing trainers of a dead step directory=" << directory.path();
  const absl::Status status = SignalGroup(record->processes.front(), SIGKILL);
  if (!status.ok()) LOG(ERROR) << status;
}

// A step marks the directory after it took the lock and holds that to its end. So if the one that
// left the mark is dead, whoever holds the lock is none, and nothing is to be waited for.
bool IsMarkOfADeadStep(const RunDirectory& directory) {
  const absl::StatusOr<ProcessRecord> record = directory.ReadProcesses(directory.StepPath());
  if (!record.ok()) return false;
  return record->boot_id != BootId() || record->processes.empty() ||
         !IsRunning(record->processes.front());
}

StepExit ExitOfDeadStep(const RunDirectory& directory) {
  if (!FileExists(directory.StepPath())) {
    if (FileExists(directory.StopPath()))
      return {static_cast<int>(ExitCode::kTerminated), "stopped before it started"};
    return {static_cast<int>(ExitCode::kNodeFailed), "the step could not start; see its log"};
  }
  const absl::StatusOr<ProcessRecord> record = directory.ReadProcesses(directory.StepPath());
  if (record.ok() && record->boot_id != BootId())
    return {static_cast<int>(ExitCode::kNodeFailed), "the node was restarted while it ran"};
  return {static_cast<int>(ExitCode::kNodeFailed), "the process that supervised the trainers died"};
}

}  // namespace

absl::Status PrepareRun(const RunDirectory& directory, const v1::RunSpec& spec,
                        const v1::WorkerConfig& worker,
                        const std::string& system_description_json) {
  RETURN_IF_ERROR(MakeDirectories(directory.path()));
  RETURN_IF_ERROR(SyncParent(directory.path()));
  RETURN_IF_ERROR(MakeDirectories(directory.WitnessDirectory(), kPrivateDirectory));
  v1::WorkerConfig shown = worker;  // secrets stay where they were
  shown.clear_enrolment_token();
  RETURN_IF_ERROR(StoreTextProto(directory.WorkerPath(), shown));
  RETURN_IF_ERROR(WriteFileAtomic(directory.SystemPath(), system_description_json));
  if (spec.has_preflight())
    RETURN_IF_ERROR(WriteFileAtomic(directory.PreflightPath(),
                                    PreflightRecord(worker.name(), spec.preflight())));
  return StoreTextProto(directory.SpecPath(), spec, 0600);  // holds the rendezvous token
}

absl::StatusOr<ProcessId> StartStepProcess(const RunDirectory& directory,
                                           const std::string& program, int listener_fd) {
  SpawnOptions options{.argv = {program, "step", directory.path()},
                       .output_path = directory.StepLogPath(),
                       .new_session = true,
                       .inherited_fd = listener_fd};
  if (listener_fd >= 0) options.argv.emplace_back(kListenerFlag);
  return Spawn(options);
}

std::optional<ProcessId> FindStepProcess(const RunDirectory& directory) {
  const absl::StatusOr<ProcessRecord> record = directory.ReadProcesses(directory.StepPath());
  if (!record.ok() || record->processes.empty() || record->boot_id != BootId()) return std::nullopt;
  return record->processes.front();
}

absl::Status StopStepProcess(const RunDirectory& directory) {
  if (!FileExists(directory.StopPath())) RETURN_IF_ERROR(WriteFileAtomic(directory.StopPath(), ""));
  const std::optional<ProcessId> step = FindStepProcess(directory);
  if (!step.has_value() || !IsRunning(*step)) return absl::OkStatus();
  if (kill(step->pid, SIGTERM) != 0 && errno != ESRCH)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot signal step ", step->pid));
  return absl::OkStatus();
}

bool HasPendingStop(const ProcessId& process) {
  const absl::StatusOr<std::string> status =
      ReadFile(absl::StrCat("/proc/", process.pid, "/status"));
  if (!status.ok() || !IsRunning(process)) return false;
  constexpr uint64_t kStops = (uint64_t{1} << (SIGTERM - 1)) | (uint64_t{1} << (SIGINT - 1));
  for (absl::string_view line : absl::StrSplit(*status, '\n')) {
    uint64_t pending = 0;
    const bool is_mask =
        absl::ConsumePrefix(&line, "ShdPnd:") || absl::ConsumePrefix(&line, "SigPnd:");
    if (is_mask && absl::SimpleHexAtoi(absl::StripAsciiWhitespace(line), &pending) &&
        (pending & kStops) != 0)
      return true;
  }
  return false;
}

void EndRunGroup(const RunDirectory& directory) {
  const absl::Status status = RemoveRunGroup(directory);
  if (!status.ok()) LOG(WARNING) << status;
}

absl::StatusOr<std::optional<StepExit>> ResolveExit(const RunDirectory& directory,
                                                    const Clock& clock) {
  const UniqueFd fd(
      open(directory.LockPath().c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open())
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", directory.LockPath()));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", directory.LockPath()));
    if (!IsMarkOfADeadStep(directory)) return std::optional<StepExit>();
    LOG(WARNING) << "another process than the step holds " << directory.LockPath();
  }
  absl::StatusOr<StepExit> exit = directory.ReadExit();
  if (exit.ok()) return std::optional<StepExit>(*std::move(exit));
  if (exit.status().code() != absl::StatusCode::kNotFound) LOG(ERROR) << exit.status();
  KillTrainers(directory);
  EndRunGroup(directory);
  const StepExit resolved = ExitOfDeadStep(directory);
  RETURN_IF_ERROR(directory.WriteExit(resolved, StampNow(clock)));
  return std::optional<StepExit>(resolved);
}

}  // namespace assay::agent
