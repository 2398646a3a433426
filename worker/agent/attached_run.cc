#include "worker/agent/attached_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/log.h"
#include "worker/agent/step_process.h"

namespace assay::agent {

AttachedRun::AttachedRun(RunDirectory directory, RunKey key, const Clock* clock)
    : directory_(std::move(directory)), key_(std::move(key)), clock_(clock) {
  absl::StatusOr<std::unique_ptr<RunRecorder>> recorder =
      RunRecorder::Open(directory_, key_, clock_);
  if (recorder.ok()) {
    recorder_ = *std::move(recorder);
  } else {
    LOG(ERROR) << "run=" << key_.run << " yields no events: " << recorder.status();
  }
}

void AttachedRun::Watch(const ProcessId& step) {
  step_ = step;
  exit_fd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, step.pid, 0)));
  // The number may be another process's by now. A child of ours keeps it until it is reaped.
  if (exit_fd_.is_open() && step.start_ticks != 0 && !IsRunning(step)) {
    pollfd entry{exit_fd_.get(), POLLIN, 0};
    if (poll(&entry, 1, 0) == 0) exit_fd_.Reset();
  }
}

void AttachedRun::End(const absl::Status& cause) {
  exit_ = StepExit{static_cast<int>(ExitCode::kNodeFailed), std::string(cause.message())};
  const absl::Status written = directory_.WriteExit(*exit_, StampNow(*clock_));
  if (!written.ok()) LOG(ERROR) << "run=" << key_.run << " " << written;
}

// Whether all that a run needs lies here; the error that keeps it from coming.
absl::StatusOr<bool> AttachedRun::HasSource() const {
  const bool needs_source = recorder_ != nullptr && recorder_->spec().command().has_source();
  if (!needs_source || FileExists(directory_.SourcePath())) return true;
  const absl::StatusOr<std::string> error = ReadFile(directory_.SourceErrorPath());
  if (!error.ok()) return false;
  return absl::UnavailableError(*error);
}

void AttachedRun::Start(const std::string& program, int listener_fd) {
  is_waiting_ = false;
  if (exit_.has_value() || step_.has_value() || FileExists(directory_.StepPath())) return;
  const absl::StatusOr<bool> has_source = HasSource();
  if (!has_source.ok()) {
    End(has_source.status());
    return;
  }
  is_waiting_ = !*has_source;
  if (is_waiting_) return;
  const absl::StatusOr<ProcessId> step = StartStepProcess(directory_, program, listener_fd);
  if (!step.ok()) {
    End(step.status());
    return;
  }
  LOG(INFO) << "step started run=" << key_.run << " generation=" << key_.generation
            << " pid=" << step->pid;
  Watch(*step);
}

void AttachedRun::Stop() {
  const absl::Status status = StopStepProcess(directory_);
  if (!status.ok()) LOG(ERROR) << "run=" << key_.run << " " << status;
  if (exit_.has_value() || exit_fd_.is_open() || FileExists(directory_.StepPath())) return;
  // Never begun; a step that an earlier agent was just starting loses the race for the lock or
  // wins.
  absl::StatusOr<std::optional<StepExit>> exit = ResolveExit(directory_, *clock_);
  if (exit.ok()) {
    exit_ = *std::move(exit);
  } else {
    LOG(ERROR) << "run=" << key_.run << " " << exit.status();
  }
}

void AttachedRun::LookForStop() {
  is_stopping_ = is_stopping_ || (step_.has_value() && HasPendingStop(*step_));
}

void AttachedRun::FindExit() {
  if (exit_.has_value()) return;
  absl::StatusOr<StepExit> written = directory_.ReadExit();
  if (written.ok()) {
    EndRunGroup(directory_);
    exit_ = *std::move(written);
    return;
  }
  if (!exit_fd_.is_open()) {
    const std::optional<ProcessId> step = FindStepProcess(directory_);
    if (!step.has_value() && !FileExists(directory_.StepPath())) return;  // not begun
    if (step.has_value()) Watch(*step);
  }
  pollfd entry{exit_fd_.get(), POLLIN, 0};
  if (exit_fd_.is_open() && poll(&entry, 1, 0) == 0) return;  // it runs
  if (step_.has_value()) PollExit(*step_).IgnoreError();      // reaps it if it is a child of ours
  exit_fd_.Reset();
  step_.reset();
  absl::StatusOr<std::optional<StepExit>> exit = ResolveExit(directory_, *clock_);
  if (!exit.ok()) {
    LOG(ERROR) << "run=" << key_.run << " " << exit.status();
    return;
  }
  exit_ = *std::move(exit);  // nullopt: another step has the lock and will leave its mark
}

RunObserved AttachedRun::Observe() {
  FindExit();
  if (exit_.has_value() && exit_fd_.is_open()) {
    pollfd entry{exit_fd_.get(), POLLIN, 0};
    if (poll(&entry, 1, 0) == 1) {
      if (step_.has_value()) PollExit(*step_).IgnoreError();
      exit_fd_.Reset();
    }
  }
  const bool is_started = FileExists(directory_.StepPath());
  is_stopping_ = is_stopping_ || FileExists(directory_.StoppingPath());
  const bool is_ready = FileExists(directory_.ReadyPath());
  if (recorder_ == nullptr)
    return RunObserved{.key = key_,
                       .is_started = is_started,
                       .exit = exit_,
                       .is_spool_complete = exit_.has_value(),
                       .is_stopping = is_stopping_,
                       .is_ready = is_ready};
  const absl::Status observed = recorder_->Observe(exit_);
  if (!observed.ok()) LOG(ERROR) << "run=" << key_.run << " " << observed;
  const absl::StatusOr<bool> synced = recorder_->SyncIfDue();
  if (!synced.ok()) LOG(ERROR) << "run=" << key_.run << " " << synced.status();
  RunObserved seen = recorder_->Observation(is_started, exit_);
  seen.is_stopping = is_stopping_;
  seen.is_ready = is_ready;
  return seen;
}

void AttachedRun::Keep(const ClockSample& sample) {
  if (exit_.has_value() || recorder_ == nullptr) return;
  const UniqueFd file(open(directory_.ClockSamplesPath().c_str(),
                           O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  const absl::Status written =
      file.is_open() ? WriteAll(file.get(), ClockSampleText(sample))
                     : absl::ErrnoToStatus(errno, "open " + directory_.ClockSamplesPath());
  if (!written.ok()) LOG(WARNING) << "run=" << key_.run << " keeps no clock: " << written;
}

std::optional<MonoTime> AttachedRun::due() const {
  return recorder_ == nullptr ? std::nullopt : recorder_->sync_due();
}

bool AttachedRun::IsWatched(absl::string_view file_name) {
  return absl::StartsWith(file_name, "result_") || file_name == "progress.jsonl" ||
         file_name == "touch.json" || file_name == "observed.json" || file_name == "pauses.json" ||
         file_name == "clocks.json" || file_name == "stopping" || file_name == "ready" ||
         file_name == "exit.json" || file_name == "step.json" || file_name == "source.tar" ||
         file_name == "source.error";
}

}  // namespace assay::agent
