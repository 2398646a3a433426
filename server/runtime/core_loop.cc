#include "server/runtime/core_loop.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "server/store/core_store.h"
#include "server/store/restore.h"

namespace assay::runtime {
namespace {

// The longest sleep, so that a timer that was computed from a clock since set is not slept through.
constexpr absl::Duration kSleepMax = absl::Seconds(1);

// Frames of 4 KiB in the write-ahead log from which it is copied into the database beside the
// commits: 16 MiB. And from which commits wait for all of that: 1 GiB.
constexpr int64_t kCheckpointFrames = 4096;
constexpr int64_t kCheckpointInlineFrames = 262144;

// What a loss of power may take from the high-water mark (ADR 0140).
constexpr int64_t kMarkSyncUs = 1'000'000;

// Shares of suspect_after: how often parked calls are looked at, whether somebody still waits for
// them; how long a worker is trusted after each look, which is enough to connect again; and how
// long after an answer, to call again.
constexpr int64_t kWatchShare = 10;
constexpr int64_t kHeldTrustShare = 4;
constexpr int64_t kAnsweredTrustShare = 2;

bool IsAboutTokens(const core::RecordedEvent& event) {
  return std::holds_alternative<core::TokenCreated>(event.event) ||
         std::holds_alternative<core::TokenRevoked>(event.event) ||
         std::holds_alternative<core::TokensForgotten>(event.event);
}

// True if a commit failed for what one of the commands asked for: a row that is too large, or that
// the schema does not allow.
bool IsOfOneCommand(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsInternal(status);
}

// What takes the place of a verdict of ours that the store cannot hold: were it only refused, it
// would be asked for again without end.
std::optional<core::CommandBody> InsteadOf(const core::Command& command,
                                           const absl::Status& status) {
  const std::string error = absl::StrCat("its verdict cannot be stored: ", status.message());
  if (const auto* checked = std::get_if<core::LogChecked>(&command.body); checked != nullptr)
    return core::LogChecked{.run = checked->run, .error = error};
  if (const auto* scored = std::get_if<core::SetScored>(&command.body); scored != nullptr)
    return core::SetScored{.submission = scored->submission, .reason = error};
  return std::nullopt;
}

// The workers whose certificates the batch has revoked.
std::vector<std::string> Revoked(const core::Outcome& outcome) {
  std::vector<std::string> workers;
  for (const core::RecordedEvent& event : outcome.events) {
    if (const auto* revoked = std::get_if<core::WorkerRevoked>(&event.event); revoked != nullptr)
      workers.push_back(revoked->worker);
  }
  return workers;
}

// The workers whose desired state the events may have changed.
std::set<std::string> Concerned(const core::Outcome& outcome, const core::State& state) {
  std::set<core::RunId> runs;
  for (const core::RecordedEvent& event : outcome.events)
    if (!std::holds_alternative<core::RunEventsAppended>(event.event)) runs.insert(event.run);
  std::set<core::RunId> with_siblings;
  for (const core::RunId id : runs) {
    const auto it = state.runs.find(id);
    if (it == state.runs.end() || !with_siblings.insert(id).second) continue;
    const auto set = state.submissions.find(it->second.submission);
    // Instances wait for each other.
    if (set != state.submissions.end() && core::IsThroughput(set->second.spec))
      with_siblings.insert(set->second.runs.begin(), set->second.runs.end());
  }
  std::set<std::string> workers(outcome.may_start.begin(), outcome.may_start.end());
  for (const core::RecordedEvent& event : outcome.events) {
    if (const auto* e = std::get_if<core::PreflightStarted>(&event.event))
      workers.insert(e->worker);
    if (const auto* e = std::get_if<core::PreflightFinished>(&event.event))
      workers.insert(e->worker);
    if (const auto* e = std::get_if<core::CacheOrdered>(&event.event)) workers.insert(e->worker);
    if (const auto* e = std::get_if<core::CacheOrderEnded>(&event.event)) workers.insert(e->worker);
    if (const auto* e = std::get_if<core::CacheOrderPostponed>(&event.event))
      workers.insert(e->worker);
    if (const auto* e = std::get_if<core::CacheOrderRetried>(&event.event))
      workers.insert(e->worker);
  }
  for (const core::RunId id : with_siblings) {
    const auto it = state.runs.find(id);
    if (it == state.runs.end()) continue;
    for (const core::RunNode& node : it->second.nodes)
      workers.insert(node.worker);
  }
  return workers;
}

}  // namespace

CoreLoop::CoreLoop(const Parts& parts, core::Core core, EffectSink effects,
                   absl::AnyInvocable<void()> begin_checkpoint, const CoreLoopOptions& options)
    : parts_(parts),
      options_(options),
      core_(std::move(core)),
      effects_(std::move(effects)),
      begin_checkpoint_(std::move(begin_checkpoint)),
      clock_(parts.clock) {
  parts_.tokens->Replace(core_.state().tokens);
  parts_.certificates->Replace(core_.state().workers);
  parts_.watchers->Committed(core_.state().last_seq, {});
}

absl::Status CoreLoop::CheckRoomFor(const core::Command& command) const {
  if (!std::holds_alternative<core::CreateSubmission>(command.body) &&
      !std::holds_alternative<core::ImportSubmission>(command.body) &&
      !std::holds_alternative<core::NoteSubmission>(command.body) &&
      !std::holds_alternative<core::SaveView>(command.body))
    return absl::OkStatus();
  const int64_t free_bytes = parts_.store->FreeDiskBytes();
  if (free_bytes >= options_.disk_reserve_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the coordinator's disk is almost full: ", free_bytes >> 20, " MiB are free, and the last ",
      options_.disk_reserve_bytes >> 20,
      " MiB are kept for runs that are under way; nothing new is accepted until its operator makes "
      "room in data_directory"));
}

absl::Duration CoreLoop::TimeToWait() {
  std::optional<int64_t> next_us = core_.NextWakeupUs();
  // What time alone brings is not tried without pause on a disk that is full.
  if (was_refused_ && next_us.has_value())
    next_us = std::max(*next_us, clock_.last_us() + absl::ToInt64Microseconds(kSleepMax));
  if (std::optional<int64_t> parked_us = parked_.NextDeadlineUs(); parked_us.has_value()) {
    parked_us = std::min(*parked_us, parked_watched_at_us_ + ParkedWatchUs());
    next_us = std::min(next_us.value_or(*parked_us), *parked_us);
  }
  if (!next_us.has_value()) return kSleepMax;
  return std::clamp(absl::Microseconds(*next_us - clock_.NowUs()), absl::ZeroDuration(), kSleepMax);
}

void CoreLoop::AnswerAllParked() {
  parked_.AnswerAll(core_);
}

void CoreLoop::Restore(const core::Command& command) {
  const absl::Status status = store::RestoreFor(command, parts_.store, &core_);
  if (!status.ok() && !absl::IsNotFound(status))
    LOG(ERROR) << "cannot read what a command is about: status=" << Quoted(status);
}

void CoreLoop::HandleBatch(std::vector<QueuedCommand> batch) {
  HandleAll(std::move(batch));
  if (parts_.observer != nullptr) parts_.observer->TurnEnded(core_);
}

void CoreLoop::HandleAll(std::vector<QueuedCommand> batch) {
  const absl::Status status = TryBatch(&batch);
  if (status.ok()) return;
  if (IsOfOneCommand(status)) return HandleEach(std::move(batch));
  for (QueuedCommand& item : batch)
    item.callback(status);
  AnswerParked({});  // while nothing can be committed, calls end all the same
}

void CoreLoop::HandleEach(std::vector<QueuedCommand> batch) {
  std::vector<QueuedCommand> one(1);
  for (QueuedCommand& item : batch) {
    one[0] = std::move(item);
    const absl::Status status = TryBatch(&one);
    if (IsOfOneCommand(status)) {
      Refuse(std::move(one[0]), status);
    } else if (!status.ok()) {
      one[0].callback(status);
    }
    one.resize(1);
  }
}

void CoreLoop::Refuse(QueuedCommand item, const absl::Status& status) {
  std::optional<core::CommandBody> instead = InsteadOf(item.command, status);
  if (instead.has_value()) {
    item.command.body = *std::move(instead);
    std::vector<QueuedCommand> one;
    one.push_back(std::move(item));
    if (TryBatch(&one).ok()) return;
    item = std::move(one[0]);
  }
  LOG(ERROR) << "command refused principal=" << Quoted(item.command.principal)
             << " kind=" << item.command.body.index() << " status=" << Quoted(status);
  item.callback(
      absl::Status(status.code(), absl::StrCat("the coordinator cannot store what this comes to (",
                                               status.message(), "); nothing of it has happened")));
}

absl::Status CoreLoop::TryBatch(std::vector<QueuedCommand>* batch) {
  std::vector<core::Command> commands;
  std::vector<Poll> polls;
  for (QueuedCommand& item : *batch) {
    Restore(item.command);
    if (const auto* call = std::get_if<core::Synchronize>(&item.command.body); call != nullptr)
      polls.push_back({commands.size(), call->worker, call->poll_timeout_us});
    commands.push_back(std::move(item.command));
  }
  const int64_t now_us = clock_.NowUs();
  WatchParked(now_us);
  core::Outcome outcome = core_.Handle(commands, now_us);
  if (absl::Status status = Commit(outcome, commands.size()); !status.ok()) {
    for (size_t i = 0; i < commands.size(); ++i)
      (*batch)[i].command = std::move(commands[i]);
    // What workers say of themselves needs no commit.
    AnswerParked({outcome.may_start.begin(), outcome.may_start.end()});
    return status;
  }

  const std::set<std::string> concerned = Concerned(outcome, core_.state());
  const std::vector<std::string> revoked = Revoked(outcome);
  core_.DropRedundant();
  Tell(outcome);
  std::vector<core::Effect> effects = std::move(outcome.effects);
  Deliver(std::move(outcome), polls, std::move(*batch));
  for (const std::string& worker : revoked)
    parked_.Refuse(worker, *parts_.certificates);
  AnswerParked(concerned);
  GiveEffects(std::move(effects));
  SyncMarkIfDue();
  CheckpointIfDue();
  return absl::OkStatus();
}

absl::Status CoreLoop::Commit(const core::Outcome& outcome, size_t command_count) {
  const MonoTime begin = parts_.clock->Mono();
  absl::Status status = parts_.store->Commit(outcome, core_.state());
  was_refused_ = !status.ok();
  last_commit_ = outcome.events.empty() ? absl::ZeroDuration() : parts_.clock->Mono() - begin;
  if (parts_.observer != nullptr && !outcome.events.empty()) {
    if (status.ok())
      parts_.observer->Committed({outcome, core_.state(), command_count, last_commit_});
    else
      parts_.observer->CommitRefused(status);
  }
  if (status.ok()) return status;
  // Memory is ahead of the disk. A full disk, and what a row cannot hold, have rolled back, so what
  // is on the disk can be read again; after anything else only a new start can tell what is true.
  CHECK(absl::IsResourceExhausted(status) || IsOfOneCommand(status)) << "status=" << Quoted(status);
  LOG(ERROR) << "commit refused status=" << Quoted(status);
  absl::StatusOr<core::State> state = parts_.store->Load();
  CHECK_OK(state.status());
  core_.Reset(*std::move(state));
  are_effects_due_ = true;
  return status;
}

void CoreLoop::Tell(const core::Outcome& outcome) {
  if (outcome.events.empty()) return;
  // Before the tokens: who finds a token made after a revocation must find the revocation too.
  if (!Revoked(outcome).empty()) parts_.certificates->Replace(core_.state().workers);
  if (std::any_of(outcome.events.begin(), outcome.events.end(), IsAboutTokens))
    parts_.tokens->Replace(core_.state().tokens);
  std::set<core::SubmissionId> submissions;
  for (const core::RecordedEvent& event : outcome.events)
    if (!event.submission.is_none()) submissions.insert(event.submission);
  parts_.watchers->Committed(outcome.events.back().seq, {submissions.begin(), submissions.end()});
}

void CoreLoop::Deliver(core::Outcome outcome, const std::vector<Poll>& polls,
                       std::vector<QueuedCommand> items) {
  auto poll = polls.begin();
  for (size_t i = 0; i < items.size(); ++i) {
    absl::StatusOr<core::Reply>& reply = outcome.replies[i];
    const bool is_poll = poll != polls.end() && poll->index == i;
    const Poll* const call = is_poll ? &*poll++ : nullptr;
    const auto* answer =
        is_poll && reply.ok() ? std::get_if<core::SynchronizeReply>(&*reply) : nullptr;
    if (answer != nullptr) parked_.Release(call->worker, answer->desired);
    if (answer != nullptr && answer->is_satisfied && call->timeout_us > 0) {
      const int64_t timeout_us = std::min(call->timeout_us, options_.park_max_us);
      parked_.Park(call->worker, clock_.last_us() + timeout_us, answer->desired,
                   std::move(items[i].callback), std::move(items[i].is_awaited));
    } else {
      items[i].callback(std::move(reply));
    }
  }
}

void CoreLoop::AnswerParked(const std::set<std::string>& concerned) {
  const int64_t now_us = clock_.last_us();
  const int64_t trust_us = core_.policy().suspect_after_us / kAnsweredTrustShare;
  for (const std::string& worker : parked_.Answer(core_, concerned, now_us))
    core_.Trust(worker, now_us + trust_us);
}

int64_t CoreLoop::ParkedWatchUs() const {
  return std::max<int64_t>(core_.policy().suspect_after_us / kWatchShare, 1);
}

void CoreLoop::WatchParked(int64_t now_us) {
  if (now_us - parked_watched_at_us_ < ParkedWatchUs()) return;
  parked_watched_at_us_ = now_us;
  const int64_t trust_us = core_.policy().suspect_after_us / kHeldTrustShare;
  for (const std::string& worker : parked_.DropLost())
    core_.Trust(worker, now_us + trust_us);
}

void CoreLoop::GiveEffects(std::vector<core::Effect> effects) {
  if (std::exchange(are_effects_due_, false)) {
    const std::vector<core::Effect> pending = core_.PendingEffects();
    effects.insert(effects.end(), pending.begin(), pending.end());
  }
  if (!effects.empty()) effects_(std::move(effects));
}

void CoreLoop::SyncMarkIfDue() {
  if (clock_.last_us() - mark_synced_at_us_ < kMarkSyncUs) return;
  mark_synced_at_us_ = clock_.last_us();
  if (const absl::Status status = parts_.store->SyncMark(); !status.ok())
    LOG(ERROR) << "high-water mark not synced status=" << Quoted(status);
}

void CoreLoop::CheckpointIfDue() {
  const int64_t frames = parts_.store->wal_frames();
  if (frames < kCheckpointFrames) return;
  const bool is_short = is_checkpoint_short_.exchange(false);
  if (!is_short && frames < kCheckpointInlineFrames) return begin_checkpoint_();
  // Unavailable: another connection is at it.
  const absl::Status status = parts_.store->Checkpoint();
  if (!status.ok() && !absl::IsUnavailable(status))
    LOG(WARNING) << "checkpoint status=" << Quoted(status);
}

}  // namespace assay::runtime
