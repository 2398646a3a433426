#include "worker/agent/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/process.h"
#include "common/status.h"
#include "worker/agent/reader_gate.h"

namespace assay::agent {
namespace {

constexpr size_t kPausesMax = 100;  // that are written down; the rest would say the same
// What happens to other files of the dataset's file system wakes the supervisor, too: on a busy
// host no more than so often to look at ranks and deadlines.
constexpr absl::Duration kLookInterval = absl::Milliseconds(10);
// A program that aborts itself has its launcher end what it started, and then ends with its code.
constexpr char kReadPast[] = "R-TIM-007";
constexpr absl::Duration kAbortPatience = absl::Milliseconds(250);

}  // namespace

StepExit ExitFor(ExitCode code, absl::string_view reason) {
  return StepExit{static_cast<int>(code), std::string(reason)};
}

StepExit ExitFor(ExitCode code, const absl::Status& status) {
  return ExitFor(code, status.message());
}

bool HasStopSignal(int signal_fd) {
  bool is_stop = false;
  signalfd_siginfo info{};
  while (read(signal_fd, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info)))
    is_stop = is_stop || info.ssi_signo != SIGCHLD;
  return is_stop;
}

absl::StatusOr<StepExit> Supervisor::Run(const Limits& limits) {
  limits_ = limits;
  deadline_ = parts_.clock->Mono() + limits.run_timeout;
  entry_deadline_ = parts_.clock->Mono() + limits.entry_patience;
  while (IsGoingOn()) {
    const bool is_monitor_alone = WaitForSomething();
    RecordArrivals(/*is_final=*/false);
    RETURN_IF_ERROR(RecordTouch());
    if (is_monitor_alone && parts_.clock->Mono() < look_at_) continue;
    look_at_ = parts_.clock->Mono() + kLookInterval;
    if (HasStopSignal(parts_.signal_fd)) Stop(ExitFor(ExitCode::kTerminated, kStopReason));
    RETURN_IF_ERROR(parts_.group->Observe());
    NoteExits();
    powers_.Look(parts_.group->Running());
    RETURN_IF_ERROR(RecordPauses());
    RETURN_IF_ERROR(RecordClocks(/*is_final=*/false));
    RETURN_IF_ERROR(RecordStalls());
    RETURN_IF_ERROR(RecordRanks(parts_.group->Running()));
    RETURN_IF_ERROR(LetIn());
    RETURN_IF_ERROR(EnforceDeadlines());
  }
  RETURN_IF_ERROR(RecordTouch());  // it may have come together with the end
  RecordArrivals(/*is_final=*/true);
  if (parts_.log->has_value()) LOG(INFO) << "log " << (*parts_.log)->Summary();
  RETURN_IF_ERROR(RecordClocks(/*is_final=*/true));
  RETURN_IF_ERROR(RecordStalls());
  RETURN_IF_ERROR(RecordRanks({}));
  return Outcome();
}

bool Supervisor::AreEntrantsAwaited() const {
  return parts_.entrants->has_value() && (*parts_.entrants)->AreAwaited();
}

// Only where the log is witnessed.
std::optional<MonoTime> Supervisor::InitDeadline() const {
  if (!limits_.init.has_value() || !parts_.log->has_value()) return std::nullopt;
  return (*parts_.log)->init().EndOf(*limits_.init);
}

bool Supervisor::IsGoingOn() const {
  return parts_.group->running_count() > 0 || (AreEntrantsAwaited() && !cause_.has_value());
}

bool Supervisor::WaitForSomething() {
  std::vector<pollfd> entries{{parts_.signal_fd, POLLIN, 0}};
  const auto add = [&entries](int fd) { entries.push_back({fd, POLLIN, 0}); };
  if (parts_.monitor->has_value() && (*parts_.monitor)->fd() >= 0) add((*parts_.monitor)->fd());
  const bool has_gate = parts_.monitor->has_value() && (*parts_.monitor)->gate_fd() >= 0;
  if (has_gate) add((*parts_.monitor)->gate_fd());
  if (parts_.log->has_value()) add((*parts_.log)->fd());
  for (const int fd : parts_.group->ExitFds())
    add(fd);
  if (parts_.entrants->has_value() && !cause_.has_value())
    for (const int fd : (*parts_.entrants)->Fds())
      add(fd);
  MonoTime next = kill_at_.has_value() ? *kill_at_ : deadline_;
  if (AreEntrantsAwaited()) next = std::min(next, entry_deadline_);
  if (!cause_.has_value()) next = std::min(next, InitDeadline().value_or(next));
  if (lost_at_.has_value() && !cause_.has_value())
    next = std::min(next, *lost_at_ + kAbortPatience);
  const absl::Duration left =
      std::clamp(next - parts_.clock->Mono(), absl::ZeroDuration(),
                 has_gate ? ReaderGate::kSilenceMax : RankWatch::kInterval) +
      absl::Milliseconds(1);
  if (parts_.log->has_value()) (*parts_.log)->Wait();
  const int ready = PollUntil(left, &entries);
  const bool has_monitor = parts_.monitor->has_value() && (*parts_.monitor)->fd() >= 0;
  return ready == 1 && has_monitor && entries[1].revents != 0;
}

// As poll(2). Until the data is touched the monitor looks in between: costs some 10 us each time.
int Supervisor::PollUntil(absl::Duration left, std::vector<pollfd>* entries) {
  const bool is_watching =
      parts_.monitor->has_value() && (*parts_.monitor)->fd() >= 0 && !has_touched_;
  while (left > absl::ZeroDuration()) {
    const absl::Duration slice = is_watching ? std::min(left, TouchMonitor::kLookInterval) : left;
    const int ready =
        poll(entries->data(), entries->size(), static_cast<int>(absl::ToInt64Milliseconds(slice)));
    if (ready != 0) return ready;
    left -= slice;
    // What cannot be read will be told when it is recorded.
    if (is_watching && (!(*parts_.monitor)->Look().ok() || (*parts_.monitor)->has_touch())) break;
  }
  return 0;
}

// The clock of a run goes on while a rank stands still; what looks like a slow epoch was one.
absl::Status Supervisor::RecordPauses() {
  bool is_changed = false;
  for (const RankStop& stop : parts_.group->TakeStops()) {
    if (stop.rank == kLauncherRank) continue;
    const Stamp now = StampNow(*parts_.clock);
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
  return is_changed ? parts_.directory->WritePauses(pauses_) : absl::OkStatus();
}

absl::Status Supervisor::RecordClocks(bool is_final) {
  if (!clock_watch_.Look(is_final)) return absl::OkStatus();
  return parts_.directory->WriteFaults(parts_.directory->ClocksPath(), clock_watch_.faults());
}

absl::Status Supervisor::RecordStalls() {
  const std::vector<NodeFault> faults = parts_.heartbeat->faults();
  if (faults.size() == stall_count_) return absl::OkStatus();
  stall_count_ = faults.size();
  return parts_.directory->WriteFaults(parts_.directory->StallsPath(), faults);
}

absl::Status Supervisor::RecordRanks(const std::vector<std::pair<int, pid_t>>& ranks) {
  const Stamp now = StampNow(*parts_.clock);
  bool is_changed = rank_watch_.Look(ranks, now);
  is_changed |= stall_watch_.Look(IsToWork() ? ranks : std::vector<std::pair<int, pid_t>>(), now);
  if (rank_watch_.replaced().has_value())
    Stop(ExitFor(ExitCode::kTerminated, *rank_watch_.replaced()));
  if (!is_changed) return absl::OkStatus();
  std::vector<NodeFault> faults = rank_watch_.faults();
  faults.insert(faults.end(), stall_watch_.faults().begin(), stall_watch_.faults().end());
  return parts_.directory->WriteFaults(parts_.directory->RanksWatchedPath(), faults);
}

// Whoever waits before the data is touched does so off the clock, and what stops ranks is told by
// itself.
bool Supervisor::IsToWork() const {
  return has_touched_ && !rank_watch_.is_hindered() &&
         std::all_of(pauses_.begin(), pauses_.end(),
                     [](const Pause& pause) { return pause.end.has_value(); });
}

absl::Status Supervisor::RecordTouch() {
  if (!parts_.monitor->has_value()) return absl::OkStatus();
  (*parts_.monitor)->LookAtGate();
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<Touch> touch, (*parts_.monitor)->Poll());
    if (!touch.has_value()) return absl::OkStatus();
    has_touched_ = true;
    RETURN_IF_ERROR(parts_.directory->WriteTouch(Completed(*touch)));
    RETURN_IF_ERROR(RecordReadPast(*touch));
  }
}

absl::Status Supervisor::RecordReadPast(const Touch& touch) const {
  if (touch.read_past.empty()) return absl::OkStatus();
  const std::string path = parts_.directory->MemoryPath();
  absl::StatusOr<std::vector<NodeFault>> faults = parts_.directory->ReadFaults(path);
  if (absl::IsNotFound(faults.status())) faults = std::vector<NodeFault>();
  RETURN_IF_ERROR(faults.status());
  faults->push_back(
      {kReadPast,
       absl::StrCat(touch.read_past, " before the first touch at ",
                    absl::FormatTime("%H:%M:%E3SZ", absl::FromUnixMicros(touch.stamp.wall_us),
                                     absl::UTCTimeZone()),
                    ", and nobody was seen to read them")});
  return parts_.directory->WriteFaults(path, *faults);
}

// With what is known of the ranks.
Touch Supervisor::Completed(Touch touch) {
  const std::vector<std::pair<int, pid_t>> ranks = parts_.group->Running();
  std::optional<int> touching;
  if (touch.is_attributed)
    for (const auto& [rank, pid] : ranks)
      if (rank >= 0 && IsDescendant(touch.pid, pid)) touching = touch.rank = rank;
  powers_.Look(ranks, touching);
  const std::optional<WitnessHole> hole = powers_.Hole();
  if (hole.has_value()) touch.holes.push_back(*hole);
  return touch;
}

// A log that shrinks is the coordinator's to judge: no record of it matches any more.
void Supervisor::RecordArrivals(bool is_final) {
  if (!parts_.log->has_value()) return;
  const absl::Status status = (*parts_.log)->Observe(is_final, parts_.heartbeat->RecentLateNs());
  if (status.ok()) return;
  LOG(ERROR) << "the log is not watched any more: " << status;
  parts_.log->reset();
}

// Nobody comes in any more once all is being ended.
absl::Status Supervisor::LetIn() {
  if (!parts_.entrants->has_value() || cause_.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR((*parts_.entrants)->LetIn());
  NoteLoss();
  return absl::OkStatus();
}

void Supervisor::NoteExits() {
  const std::vector<RankExit> exits = parts_.group->TakeExits();
  if (parts_.entrants->has_value()) (*parts_.entrants)->Answer(exits);
  if (parts_.group->first_failure().has_value())
    Stop(parts_.workload->Read(*parts_.group->first_failure()));
  const bool has_launcher_ended = std::any_of(
      exits.begin(), exits.end(), [](const RankExit& exit) { return exit.rank == kLauncherRank; });
  if (has_launcher_ended && AreEntrantsAwaited())
    Stop(ExitFor(ExitCode::kCommLost,
                 "the launcher has ended before it had started all processes of this node"));
}

void Supervisor::NoteLoss() {
  if (!(*parts_.entrants)->HasLostOne()) return;
  const MonoTime now = parts_.clock->Mono();
  if (!lost_at_.has_value()) lost_at_ = now;
  if (now >= *lost_at_ + kAbortPatience)
    Stop(ExitFor(ExitCode::kCommLost, "the launcher has ended the program's processes"));
}

// The first reason counts.
void Supervisor::Stop(StepExit cause) {
  if (cause_.has_value()) return;
  LOG(INFO) << "stopping trainers reason=" << Quoted(cause.reason);
  cause_ = std::move(cause);
  kill_at_ = parts_.clock->Mono() + limits_.grace;
  absl::Status status = parts_.group->Signal(SIGTERM);
  if (!status.ok()) LOG(ERROR) << status;
  // The agent, if it is told to leave, waits for what comes of it.
  status = WriteFileAtomic(parts_.directory->StoppingPath(), "", kPrivateFile);
  if (!status.ok()) LOG(ERROR) << status;
}

absl::Status Supervisor::EnforceDeadlines() {
  const MonoTime now = parts_.clock->Mono();
  if (!cause_.has_value() && now >= deadline_) {
    Stop(ExitFor(ExitCode::kTerminated,
                 absl::StrCat("the run's time limit of ", absl::FormatDuration(limits_.run_timeout),
                              " has passed")));
  }
  const std::optional<MonoTime> init_deadline = InitDeadline();
  if (init_deadline.has_value() && now >= *init_deadline)
    Stop(ExitFor(ExitCode::kTerminated,
                 absl::StrCat("no run_start has come within ", absl::FormatDuration(*limits_.init),
                              " of init_start, which came at ",
                              absl::FormatTime("%H:%M:%SZ", *(*parts_.log)->init().Begin(),
                                               absl::UTCTimeZone()),
                              "; the round allows no longer initialisation (R-TIM-022)")));
  if (AreEntrantsAwaited() && now >= entry_deadline_)
    Stop(ExitFor(ExitCode::kCommLost,
                 absl::StrCat("the launcher has not started all processes of this node within ",
                              absl::FormatDuration(limits_.entry_patience))));
  if (!kill_at_.has_value() || now < *kill_at_) return absl::OkStatus();
  kill_at_ = now + limits_.grace;
  return parts_.group->Signal(SIGKILL);
}

StepExit Supervisor::Outcome() const {
  // A stop that came when all had done their work changes nothing, unless it was not theirs.
  const bool is_work_done = !rank_watch_.replaced().has_value() &&
                            !parts_.group->first_failure().has_value() && !AreEntrantsAwaited() &&
                            !lost_at_.has_value();
  if (is_work_done || !cause_.has_value()) return ExitFor(ExitCode::kOk, Describe(ExitCode::kOk));
  return *cause_;
}

}  // namespace assay::agent
