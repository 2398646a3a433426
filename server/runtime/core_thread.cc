#include "server/runtime/core_thread.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "server/store/store.h"

namespace assay::runtime {
namespace {

// The longest sleep, so that a timer that was computed from a clock since set is not slept through.
constexpr absl::Duration kSleepMax = absl::Seconds(1);

// Frames of 4 KiB in the write-ahead log from which it is copied into the database: 16 MiB. And
// from which commits wait for that: 1 GiB.
constexpr int64_t kCheckpointFrames = 4096;
constexpr int64_t kCheckpointInlineFrames = 262144;

// What a loss of power may take from the high-water mark (ADR 0140).
constexpr int64_t kMarkSyncUs = 1'000'000;

// Our time follows the wall clock, but never faster or slower than the monotonic one by more than a
// tenth: a wall clock that is set forward must not make every worker look silent.
constexpr int64_t kSlewDivisor = 10;

void BecomeRealtime() {
  sched_param parameters = {};
  parameters.sched_priority = 1;
  const int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
  LOG(INFO) << "core_thread realtime=" << (error == 0 ? "yes" : "no (needs CAP_SYS_NICE)");
}

bool IsAboutTokens(const core::RecordedEvent& event) {
  return std::holds_alternative<core::TokenCreated>(event.event) ||
         std::holds_alternative<core::TokenRevoked>(event.event);
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
  std::set<std::string> workers;
  for (const core::RecordedEvent& event : outcome.events) {
    const auto it = state.runs.find(event.run);
    if (it == state.runs.end() || std::holds_alternative<core::RunEventsAppended>(event.event))
      continue;
    for (const core::RunNode& node : it->second.nodes)
      workers.insert(node.worker);
  }
  return workers;
}

}  // namespace

CoreThread::CoreThread(const Parts& parts, core::Core core, EffectSink effects,
                       CoreThreadOptions options)
    : parts_(parts), options_(options), core_(std::move(core)), effects_(std::move(effects)) {}

CoreThread::~CoreThread() {
  Stop();
}

void CoreThread::Start() {
  last_mono_ = parts_.clock->Mono();
  last_now_us_ = absl::ToUnixMicros(parts_.clock->Wall());
  parts_.tokens->Replace(core_.state().tokens);
  parts_.certificates->Replace(core_.state().workers);
  parts_.watchers->Committed(core_.state().last_seq, {});
  thread_ = std::thread([this] { Loop(); });
}

absl::Status CoreThread::CheckRoomFor(const core::Command& command) const {
  if (!std::holds_alternative<core::CreateSubmission>(command.body) &&
      !std::holds_alternative<core::ImportSubmission>(command.body))
    return absl::OkStatus();
  const int64_t free_bytes = parts_.store->FreeDiskBytes();
  if (free_bytes >= options_.disk_reserve_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the coordinator's disk is almost full: ", free_bytes >> 20, " MiB are free, and the last ",
      options_.disk_reserve_bytes >> 20,
      " MiB are kept for runs that are under way; nothing new is accepted until its operator makes "
      "room in data_directory"));
}

void CoreThread::Post(core::Command command, Callback callback) {
  if (absl::Status room = CheckRoomFor(command); !room.ok()) {
    callback(std::move(room));
    return;
  }
  const bool is_ours = command.principal == core::kCoordinator && command.standing.role.empty();
  bool is_stopping = false;
  {
    MutexLock lock(&mutex_);
    is_stopping = is_stopping_;
    if (!is_stopping && (is_ours || queue_.size() < options_.queue_limit)) {
      queue_.push_back(Item{std::move(command), std::move(callback)});
      wake_.NotifyOne();
      return;
    }
  }
  if (is_stopping) {
    callback(absl::UnavailableError("the coordinator is stopping; retry later"));
  } else {
    callback(absl::ResourceExhaustedError("too many requests wait; retry later"));
  }
}

void CoreThread::Poke() {
  MutexLock lock(&mutex_);
  is_poked_ = true;
  wake_.NotifyOne();
}

void CoreThread::Stop() {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    wake_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
  checkpoint_thread_.Stop();
}

int64_t CoreThread::NowUs() {
  const MonoTime mono = parts_.clock->Mono();
  const int64_t elapsed_us = absl::ToInt64Microseconds(mono - last_mono_);
  const int64_t slack_us = elapsed_us / kSlewDivisor;
  const int64_t steady_us = last_now_us_ + elapsed_us;
  last_mono_ = mono;
  last_now_us_ = std::clamp(absl::ToUnixMicros(parts_.clock->Wall()), steady_us - slack_us,
                            steady_us + slack_us);
  return last_now_us_;
}

absl::Duration CoreThread::TimeToWait() {
  std::optional<int64_t> next_us = core_.NextWakeupUs();
  for (const auto& [worker, parked] : parked_)
    next_us = std::min(next_us.value_or(parked.deadline_us), parked.deadline_us);
  if (!next_us.has_value()) return kSleepMax;
  return std::clamp(absl::Microseconds(*next_us - NowUs()), absl::ZeroDuration(), kSleepMax);
}

std::vector<CoreThread::Item> CoreThread::Take() {
  const absl::Duration wait = TimeToWait();
  MutexLock lock(&mutex_);
  if (queue_.empty() && !is_poked_ && !is_stopping_)
    wake_.WaitFor(&mutex_, absl::ToChronoNanoseconds(wait));
  is_poked_ = false;
  std::vector<Item> items;
  while (!queue_.empty() && items.size() < options_.batch_max) {
    items.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return items;
}

void CoreThread::Loop() {
  pthread_setname_np(pthread_self(), "core");
  if (options_.is_realtime_wanted) BecomeRealtime();
  while (true) {
    std::vector<Item> items = Take();
    const bool is_idle = items.empty();
    HandleBatch(std::move(items));
    MutexLock lock(&mutex_);
    if (is_idle && is_stopping_ && queue_.empty()) break;
  }
  AnswerAllParked();
}

void CoreThread::Restore(const core::Command& command) {
  const std::optional<core::RunId> missing = core_.MissingRun(command);
  if (!missing.has_value()) return;
  absl::StatusOr<core::Run> run = parts_.store->LoadRun(*missing);
  if (run.ok()) {
    core_.Restore(*std::move(run));
  } else if (!absl::IsNotFound(run.status())) {
    LOG(ERROR) << "cannot load run=" << *missing << " status=" << Quoted(run.status());
  }
}

void CoreThread::HandleBatch(std::vector<Item> items) {
  const absl::Status status = TryBatch(&items);
  if (status.ok()) return;
  if (IsOfOneCommand(status)) return HandleEach(std::move(items));
  for (Item& item : items)
    item.callback(status);
}

void CoreThread::HandleEach(std::vector<Item> items) {
  std::vector<Item> one(1);
  for (Item& item : items) {
    one[0] = std::move(item);
    const absl::Status status = TryBatch(&one);
    if (!status.ok()) Refuse(std::move(one[0]), status);
    one.resize(1);
  }
}

void CoreThread::Refuse(Item item, const absl::Status& status) {
  std::optional<core::CommandBody> instead = InsteadOf(item.command, status);
  if (instead.has_value()) {
    item.command.body = *std::move(instead);
    std::vector<Item> one;
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

absl::Status CoreThread::TryBatch(std::vector<Item>* items) {
  std::vector<core::Command> commands;
  std::vector<Poll> polls;
  for (Item& item : *items) {
    Restore(item.command);
    if (const auto* call = std::get_if<core::Synchronize>(&item.command.body); call != nullptr)
      polls.push_back({commands.size(), call->worker, call->poll_timeout_us});
    commands.push_back(std::move(item.command));
  }
  core::Outcome outcome = core_.Handle(commands, NowUs());
  if (absl::Status status = Commit(outcome); !status.ok()) {
    for (size_t i = 0; i < commands.size(); ++i)
      (*items)[i].command = std::move(commands[i]);
    return status;
  }

  const std::set<std::string> concerned = Concerned(outcome, core_.state());
  const std::vector<std::string> revoked = Revoked(outcome);
  core_.DropRedundant();
  Tell(outcome);
  std::vector<core::Effect> effects = std::move(outcome.effects);
  std::vector<Callback> callbacks;
  for (Item& item : *items)
    callbacks.push_back(std::move(item.callback));
  Deliver(std::move(outcome), polls, std::move(callbacks));
  RefuseParked(revoked);
  AnswerParked(concerned);
  if (std::exchange(are_effects_due_, false)) {
    const std::vector<core::Effect> pending = core_.PendingEffects();
    effects.insert(effects.end(), pending.begin(), pending.end());
  }
  if (!effects.empty()) effects_(std::move(effects));
  SyncMarkIfDue();
  CheckpointIfDue();
  return absl::OkStatus();
}

absl::Status CoreThread::Commit(const core::Outcome& outcome) {
  absl::Status status = parts_.store->Commit(outcome, core_.state());
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

void CoreThread::Tell(const core::Outcome& outcome) {
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

void CoreThread::Deliver(core::Outcome outcome, const std::vector<Poll>& polls,
                         std::vector<Callback> callbacks) {
  auto poll = polls.begin();
  for (size_t i = 0; i < callbacks.size(); ++i) {
    absl::StatusOr<core::Reply>& reply = outcome.replies[i];
    const bool is_poll = poll != polls.end() && poll->index == i;
    const Poll* const call = is_poll ? &*poll++ : nullptr;
    const auto* answer =
        is_poll && reply.ok() ? std::get_if<core::SynchronizeReply>(&*reply) : nullptr;
    if (answer != nullptr && answer->is_satisfied && call->timeout_us > 0) {
      Park(*call, answer->desired, std::move(callbacks[i]));
    } else {
      callbacks[i](std::move(reply));
    }
  }
}

void CoreThread::Park(const Poll& poll, core::Desired desired, Callback callback) {
  // A worker that calls again has given up the call before: its answer goes nowhere, but frees it.
  const auto it = parked_.find(poll.worker);
  if (it != parked_.end()) {
    it->second.callback(core::Reply(core::SynchronizeReply{desired, true}));
    parked_.erase(it);
  }
  const int64_t timeout_us = std::min(poll.timeout_us, options_.park_max_us);
  parked_.emplace(poll.worker,
                  Parked{last_now_us_ + timeout_us, std::move(desired), std::move(callback)});
}

void CoreThread::AnswerParked(const std::set<std::string>& concerned) {
  for (auto it = parked_.begin(); it != parked_.end();) {
    Parked& parked = it->second;
    const bool is_over = parked.deadline_us <= last_now_us_;
    if (!is_over && concerned.count(it->first) == 0) {
      ++it;
      continue;
    }
    core::Desired desired = core_.DesiredFor(it->first);
    if (!is_over && desired == parked.desired) {
      ++it;
      continue;
    }
    parked.callback(core::Reply(core::SynchronizeReply{std::move(desired), is_over}));
    it = parked_.erase(it);
  }
}

// The call was let in while its certificate was good. A worker that has enrolled since calls again.
void CoreThread::RefuseParked(const std::vector<std::string>& revoked) {
  for (const std::string& worker : revoked) {
    const auto it = parked_.find(worker);
    if (it == parked_.end()) continue;
    const int64_t valid_from = parts_.certificates->ValidFrom(worker);
    it->second.callback(core::CheckCertificate(worker, valid_from - 1, valid_from));
    parked_.erase(it);
  }
}

void CoreThread::AnswerAllParked() {
  for (auto& [worker, parked] : parked_)
    parked.callback(core::Reply(core::SynchronizeReply{core_.DesiredFor(worker), true}));
  parked_.clear();
}

void CoreThread::SyncMarkIfDue() {
  if (last_now_us_ - mark_synced_at_us_ < kMarkSyncUs) return;
  mark_synced_at_us_ = last_now_us_;
  if (const absl::Status status = parts_.store->SyncMark(); !status.ok())
    LOG(ERROR) << "high-water mark not synced status=" << Quoted(status);
}

void CoreThread::CheckpointIfDue() {
  const int64_t frames = parts_.store->wal_frames();
  if (frames < kCheckpointFrames) return;
  const auto report = [](const absl::Status& status) {
    // Unavailable: another connection is at it.
    if (!status.ok() && !absl::IsUnavailable(status))
      LOG(WARNING) << "checkpoint status=" << Quoted(status);
  };
  if (frames >= kCheckpointInlineFrames) {
    report(parts_.store->Checkpoint());
    return;
  }
  // Refused while one is queued already: it will see these frames too.
  [[maybe_unused]] const bool is_taken = checkpoint_thread_.Post(
      [checkpointer = parts_.checkpointer, report] { report(checkpointer->Run()); });
}

}  // namespace assay::runtime
