#include "server/core/core.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "server/core/allocate.h"
#include "server/core/apply.h"
#include "server/core/cache_orders.h"
#include "server/core/decide.h"
#include "server/core/desired.h"
#include "server/core/explain.h"
#include "server/core/forget.h"
#include "server/core/lease.h"
#include "server/core/node_checks.h"
#include "server/core/node_figures.h"
#include "server/core/planner.h"
#include "server/core/schedule.h"
#include "server/core/worker_view.h"

namespace assay::core {
namespace {

// Starts of an agent that are remembered, so that late calls of an earlier one are told apart.
constexpr size_t kPastIncarnationsMax = 16;

// What is older than a month need not go in the second.
constexpr int64_t kForgetEveryUs = 3600LL * 1'000'000;
// A coordinator that nobody calls looks at everything as often.
constexpr int64_t kScheduleEveryUs = 1'000'000;

// The run that an event is about, if any.
template <typename E>
RunId RunOf(const E& event) {
  if constexpr (requires { event.run; }) {
    return event.run;
  } else {
    return RunId{};
  }
}

// The submission that an event is about. A run's is looked up before the event is applied, unless
// the event makes the run.
template <typename E>
SubmissionId SubmissionOf(const E& event, const State& state) {
  if constexpr (std::is_same_v<E, SubmissionImported>) {
    return event.submission.id;
  } else if constexpr (requires { event.submission; }) {
    return event.submission;
  } else {
    const auto it = state.runs.find(RunOf(event));
    return it == state.runs.end() ? SubmissionId{} : it->second.submission;
  }
}

// A certificate may have been revoked since the call that the command comes from was let in.
absl::Status CheckCaller(const State& state, const Command& command) {
  if (!command.certificate_generation.has_value()) return absl::OkStatus();
  const auto it = state.workers.find(command.principal);
  if (it == state.workers.end()) return absl::OkStatus();
  return CheckCertificate(command.principal, *command.certificate_generation,
                          it->second.certificate_generation);
}

// Commands that only look.
template <typename Body>
constexpr bool kIsReadOnly =
    std::is_same_v<Body, ExplainSubmission> || std::is_same_v<Body, PlanPlacement> ||
    std::is_same_v<Body, ListWorkers> || std::is_same_v<Body, GetServerInfo>;

}  // namespace

absl::string_view TypeOf(const Event& event) {
  return std::visit([](const auto& e) { return e.kType; }, event);
}

Core::Core(Policy policy, State state, int64_t now_us)
    : policy_(std::move(policy)), state_(std::move(state)), now_us_(now_us) {
  for (const auto& [name, worker] : state_.workers)
    presence_[name].last_seen_us = now_us;
  for (const auto& [id, submission] : state_.submissions)
    to_advance_.insert(id);
  for (const auto& [id, allocation] : state_.allocations)
    if (IsServing(allocation.state) && !allocation.job.empty() &&
        allocation.spec.launcher != kSubmitterLauncher)
      unheard_.insert(id);
}

void Core::Reset(State state) {
  state_ = std::move(state);
  is_schedule_due_ = true;
  is_drop_due_ = true;
  restored_.clear();
  to_advance_.clear();
  for (const auto& [id, submission] : state_.submissions)
    to_advance_.insert(id);
  // Whose first call was refused with the commit has not called.
  std::erase_if(presence_,
                [this](const auto& entry) { return !state_.workers.contains(entry.first); });
  asked_.clear();  // what was asked for may have been lost with the outcome
}

Outcome Core::Handle(const std::vector<Command>& commands, int64_t now_us) {
  // The wall clock may be set back; our time does not follow.
  now_us_ = std::max(now_us_, now_us);
  Outcome outcome;
  outcome.replies.reserve(commands.size());
  for (const Command& command : commands)
    HandleOne(command, &outcome);
  if (IsScheduleDue()) {
    is_schedule_due_ = false;  // unless it finds something, which may bring more
    Schedule(&outcome);
    scheduled_at_us_ = now_us_;
    wakeup_us_ = FindNextWakeupUs();
  }
  FinishReplies(&outcome);
  return outcome;
}

bool Core::IsScheduleDue() const {
  return is_schedule_due_ || now_us_ - scheduled_at_us_ >= kScheduleEveryUs ||
         (wakeup_us_.has_value() && now_us_ >= *wakeup_us_);
}

void Core::HandleOne(const Command& command, Outcome* outcome) {
  const Context context{state_, command.principal, command.standing, now_us_, launcher_};
  const size_t index = outcome->replies.size();
  absl::StatusOr<Decision> decision = std::visit(
      [&](const auto& body) -> absl::StatusOr<Decision> {
        using Body = std::decay_t<decltype(body)>;
        RETURN_IF_ERROR(CheckCaller(state_, command));
        // Of calls Hear says whether they bring anything.
        if constexpr (!kIsReadOnly<Body> && !std::is_same_v<Body, Synchronize>)
          is_schedule_due_ = true;
        if constexpr (kIsReadOnly<Body>) {
          absl::StatusOr<Reply> reply = Read(body);
          if (!reply.ok()) return reply.status();
          return Decision{.reply = *std::move(reply)};
        } else {
          return Decide(context, body);
        }
      },
      command.body);
  if (const auto* synchronize = std::get_if<Synchronize>(&command.body);
      synchronize != nullptr && decision.ok()) {
    if (absl::Status status = Hear(*synchronize); !status.ok()) decision = std::move(status);
    if (decision.ok() && synchronize->report.is_ready)
      FindThoseWhoMayStart(synchronize->report.run, outcome);
    synchronized_.emplace_back(index, synchronize->worker);
  }
  if (!decision.ok()) {
    outcome->replies.push_back(decision.status());
    return;
  }
  if (!decision->run_events.empty())
    outcome->run_events.push_back(
        {std::get<AppendRunEvents>(command.body).run, std::move(decision->run_events)});
  for (Event& event : decision->events)
    Record(std::move(event), command.principal, outcome);
  if (const auto* started = std::get_if<LauncherStarted>(&command.body); started != nullptr) {
    launcher_ = *started;
    asked_.clear();
  }
  if (const auto* report = std::get_if<LaunchReported>(&command.body); report != nullptr)
    HearLauncher(*report, outcome);
  outcome->replies.push_back(std::move(decision->reply));
}

absl::StatusOr<Reply> Core::Read(const ExplainSubmission& command) const {
  absl::StatusOr<Explanation> answer =
      Explain({state_, presence_, policy_, launcher_, waits_, health_, now_us_}, command.submission,
              command.viewer);
  if (!answer.ok()) return answer.status();
  return Reply(*std::move(answer));
}

absl::StatusOr<Reply> Core::Read(const PlanPlacement& command) const {
  return Reply(PlanFor(state_, presence_, launcher_, command.spec, command.viewer));
}

absl::StatusOr<Reply> Core::Read(const ListWorkers& command) const {
  static const auto* const kUnseen = new Presence;
  WorkersReply reply;
  reply.workers.reserve(state_.workers.size());
  for (const auto& [name, worker] : state_.workers) {
    // One that was revoked before its first call has none.
    const auto it = presence_.find(name);
    const Presence& presence = it == presence_.end() ? *kUnseen : it->second;
    WorkersReply::Entry entry =
        command.is_brief ? BriefEntry(worker, presence) : WorkersReply::Entry{worker, presence};
    if (std::optional<NodeFigures>& figures = entry.presence.figures; figures.has_value())
      figures->age_ms =
          std::min(kFiguresAgeMaxMs,
                   figures->age_ms + (now_us_ - entry.presence.figures_heard_at_us) / 1000);
    HideWork(state_, command.viewer, &entry);
    reply.workers.push_back(std::move(entry));
  }
  return Reply(std::move(reply));
}

absl::StatusOr<Reply> Core::Read(const GetServerInfo&) const {
  const auto worker_count =
      std::count_if(state_.workers.begin(), state_.workers.end(),
                    [](const auto& entry) { return entry.second.state != WorkerState::kGone; });
  return Reply(ServerInfo{.last_seq = state_.last_seq,
                          .submission_count = state_.last_submission,
                          .worker_count = worker_count});
}

void Core::HearLauncher(const LaunchReported& report, Outcome* outcome) {
  const auto it = state_.allocations.find(report.allocation);
  const bool is_over =
      it == state_.allocations.end() || it->second.state == AllocationState::kEnded;
  using Said = LaunchReported::Outcome;
  if (report.outcome == Said::kPending && !is_over) {
    waits_[report.allocation] = report.waiting;
  } else {
    waits_.erase(report.allocation);
  }
  if (report.outcome == Said::kGranted) doubts_.Answer(state_, report.allocation, now_us_);
  if (report.outcome != Said::kPending) unheard_.erase(report.allocation);
  // What has failed is asked for again.
  if (is_over || it->second.failure_count > 0) asked_.erase(report.allocation);
  // Nodes that come when nobody waits for them any more go back at once.
  if (is_over && (report.outcome == Said::kGranted || report.outcome == Said::kPending))
    outcome->effects.push_back(ReleaseNodes{report.allocation});
}

absl::Status Core::Hear(const Synchronize& command) {
  Presence& presence = presence_[command.worker];
  const auto it = state_.workers.find(command.worker);
  const std::string& incarnation = command.description.incarnation;
  std::vector<std::string>& past = presence.past_incarnations;
  if (std::find(past.begin(), past.end(), incarnation) != past.end())
    return absl::AbortedError(absl::StrCat("worker ", command.worker,
                                           " was started again since incarnation ", incarnation));
  if (it != state_.workers.end() && it->second.description.incarnation != incarnation) {
    past.push_back(it->second.description.incarnation);
    if (past.size() > kPastIncarnationsMax) past.erase(past.begin());
  }
  is_schedule_due_ =
      is_schedule_due_ || !presence.is_reported || !(presence.report == command.report);
  presence.last_seen_us = now_us_;
  presence.clock_offset_us = command.clock_offset_us;
  presence.clock_offset_uncertainty_us = command.clock_offset_uncertainty_us;
  presence.is_reported = true;
  presence.report = command.report;
  presence.figures = command.figures;
  if (presence.figures.has_value())
    presence.figures->age_ms = std::clamp<int64_t>(presence.figures->age_ms, 0, kFiguresAgeMaxMs);
  presence.figures_heard_at_us = now_us_;
  presence.certificate_end_us = command.certificate_end_us;
  return absl::OkStatus();
}

void Core::Record(Event event, const std::string& principal, Outcome* outcome) {
  is_schedule_due_ = true;
  is_drop_due_ = true;
  RecordedEvent record;
  record.seq = state_.last_seq + 1;
  record.at_us = now_us_;
  record.principal = principal;
  record.run = std::visit([](const auto& e) { return RunOf(e); }, event);
  record.submission = std::visit([this](const auto& e) { return SubmissionOf(e, state_); }, event);
  record.event = std::move(event);
  Apply(record, &state_);
  health_.Note(record, state_);
  // Arriving log lines are many and change nothing that a submission's progress depends on.
  if (!record.submission.is_none() && !std::holds_alternative<RunEventsAppended>(record.event))
    to_advance_.insert(record.submission);
  if (std::holds_alternative<RunUploaded>(record.event))
    outcome->effects.push_back(CheckLog{record.run});
  if (std::holds_alternative<SubmissionCheckStarted>(record.event))
    outcome->effects.push_back(ScoreSubmission{record.submission});
  outcome->events.push_back(std::move(record));
}

void Core::RecordAll(std::vector<Event> events, Outcome* outcome) {
  for (Event& event : events)
    Record(std::move(event), std::string(kCoordinator), outcome);
}

void Core::AdvanceSubmissions(Outcome* outcome) {
  while (!to_advance_.empty()) {
    const auto it = state_.submissions.find(*to_advance_.begin());
    to_advance_.erase(to_advance_.begin());
    if (it != state_.submissions.end())
      RecordAll(AdvanceSubmission(state_, it->second, policy_), outcome);
  }
}

void Core::Schedule(Outcome* outcome) {
  RecordAll(WatchPresence(state_, presence_, policy_, now_us_), outcome);
  const std::set<RunId> active = state_.active;
  for (const AllocationId id : doubts_.Watch(state_, launcher_, now_us_))
    asked_.erase(id);
  for (const RunId id : active)
    if (!doubts_.Holds(id, now_us_))
      RecordAll(AdvanceRun(state_, state_.runs.at(id), policy_, now_us_), outcome);
  RecordAll(AssignWorkers(state_), outcome);
  // Who is preempted has a deadline at once, and a better word a moment later.
  std::set<AllocationId> unheard = doubts_.Open(now_us_);
  unheard.insert(unheard_.begin(), unheard_.end());
  RecordAll(AdvanceAllocations(state_, unheard, now_us_), outcome);
  AdvanceSubmissions(outcome);
  RecordAll(AdvancePreflights(state_, now_us_), outcome);
  RecordAll(RetryCacheOrders(state_, now_us_), outcome);
  RecordAll(Place(state_, presence_, policy_, now_us_), outcome);
  AskLauncher(outcome);
  RecordAll(ForgetEnded(state_), outcome);
  if (now_us_ - forgot_at_us_ < kForgetEveryUs) return;
  forgot_at_us_ = now_us_;
  RecordAll(ForgetOld(state_, now_us_), outcome);
}

void Core::AskLauncher(Outcome* outcome) {
  RecordAll(AskForNodes(state_, presence_, launcher_, health_, now_us_), outcome);
  std::erase_if(asked_, [this](const auto& entry) {
    const auto it = state_.allocations.find(entry.first);
    return it == state_.allocations.end() || it->second.state == AllocationState::kEnded;
  });
  for (const auto& [id, allocation] : state_.allocations) {
    const bool is_ours = allocation.spec.launcher == launcher_.launcher &&
                         allocation.spec.launcher != kAttachLauncher;
    if (!is_ours || allocation.state == AllocationState::kEnded || now_us_ < allocation.retry_at_us)
      continue;
    const bool is_releasing = allocation.state == AllocationState::kReleasing;
    if (is_releasing && !IsReleaseDue(state_, allocation, now_us_)) continue;
    // Getting nodes and keeping them is asked for alike.
    const AllocationState wanted =
        is_releasing ? AllocationState::kReleasing : AllocationState::kGranted;
    const auto [asked, is_new] = asked_.try_emplace(id, wanted);
    if (!is_new && asked->second == wanted) continue;
    asked->second = wanted;
    if (is_releasing) {
      outcome->effects.push_back(ReleaseNodes{id});
    } else {
      outcome->effects.push_back(AcquireNodes{allocation});
    }
  }
}

void Core::FinishReplies(Outcome* outcome) {
  for (const auto& [index, worker] : synchronized_) {
    if (!outcome->replies[index].ok()) continue;
    const Desired desired = DesiredFor(worker);
    const bool is_satisfied = IsSatisfied(desired, presence_.at(worker).report);
    outcome->replies[index] = SynchronizeReply{desired, is_satisfied};
  }
  synchronized_.clear();
  for (absl::StatusOr<Reply>& reply : outcome->replies) {
    if (!reply.ok()) continue;
    if (auto* made = std::get_if<SubmissionReply>(&*reply); made != nullptr) {
      const auto it = state_.submissions.find(made->id);
      if (it != state_.submissions.end()) made->submission = it->second;
    } else if (auto* worker = std::get_if<Worker>(&*reply); worker != nullptr) {
      *worker = state_.workers.at(worker->name);
    } else if (auto* lease = std::get_if<Allocation>(&*reply); lease != nullptr) {
      *lease = state_.allocations.at(lease->id);
    }
  }
}

std::optional<Core::Target> Core::Missing(const Command& command) const {
  const auto run_of = [&command]() -> RunId {
    if (const auto* append = std::get_if<AppendRunEvents>(&command.body)) return append->run;
    if (const auto* artifact = std::get_if<RecordArtifact>(&command.body)) return artifact->run;
    if (const auto* upload = std::get_if<AuthorizeUpload>(&command.body)) return upload->record.run;
    const auto* synchronize = std::get_if<Synchronize>(&command.body);
    if (synchronize == nullptr || synchronize->report.phase != WorkerPhase::kFinished) return {};
    return synchronize->report.run;
  };
  const auto submission_of = [&command]() -> SubmissionId {
    if (const auto* cancel = std::get_if<CancelSubmission>(&command.body))
      return cancel->submission;
    if (const auto* explain = std::get_if<ExplainSubmission>(&command.body))
      return explain->submission;
    if (const auto* note = std::get_if<NoteSubmission>(&command.body)) return note->submission;
    if (const auto* publish = std::get_if<PublishSubmission>(&command.body))
      return publish->submission;
    if (const auto* withdraw = std::get_if<WithdrawSubmission>(&command.body))
      return withdraw->submission;
    if (const auto* prune = std::get_if<PruneInstances>(&command.body)) return prune->submission;
    return {};
  };
  const RunId run = run_of();
  if (run.number >= 1 && run.number <= state_.last_run && !state_.runs.contains(run)) return run;
  const SubmissionId id = submission_of();
  if (id.number >= 1 && id.number <= state_.last_submission && !state_.submissions.contains(id))
    return id;
  return std::nullopt;
}

void Core::Restore(Run run) {
  is_drop_due_ = true;
  restored_.insert(run.id);
  const RunId id = run.id;
  state_.runs.emplace(id, std::move(run));
}

void Core::Restore(ClosedSubmission closed) {
  is_drop_due_ = true;
  const SubmissionId id = closed.submission.id;
  for (Run& run : closed.runs)
    state_.runs.emplace(run.id, std::move(run));
  state_.submissions.emplace(id, std::move(closed.submission));
  state_.closed.insert(id);  // so DropRedundant drops it
}

void Core::DropRedundant() {
  if (!std::exchange(is_drop_due_, false)) return;
  DropAllRedundant(&state_);
  for (const RunId id : restored_)
    DropIfRedundant(id, &state_);
  restored_.clear();
}

std::vector<Effect> Core::PendingEffects() const {
  std::vector<Effect> effects;
  for (const RunId id : state_.active)
    if (state_.runs.at(id).state == RunState::kUploading) effects.push_back(CheckLog{id});
  for (const auto& [id, submission] : state_.submissions)
    if (submission.state == SubmissionState::kChecking) effects.push_back(ScoreSubmission{id});
  return effects;
}

void Core::FindThoseWhoMayStart(RunId id, Outcome* outcome) const {
  const auto run = state_.runs.find(id);
  if (run == state_.runs.end()) return;
  const auto set = state_.submissions.find(run->second.submission);
  if (set == state_.submissions.end() || !AreInstancesReady(state_, presence_, set->second)) return;
  for (const RunId instance : set->second.runs) {
    for (const RunNode& node : state_.runs.at(instance).nodes) {
      const auto it = presence_.find(node.worker);
      if (it != presence_.end() && it->second.report.is_ready &&
          !it->second.report.has_leave_to_start)
        outcome->may_start.push_back(node.worker);
    }
  }
}

Desired Core::DesiredFor(const std::string& worker) const {
  return core::DesiredFor(state_, worker, presence_, policy_.secret);
}

void Core::Trust(const std::string& worker, int64_t until_us) {
  const auto it = presence_.find(worker);
  if (it == presence_.end()) return;
  int64_t& last_seen_us = it->second.last_seen_us;
  last_seen_us = std::max(last_seen_us, until_us - policy_.suspect_after_us);
}

std::optional<int64_t> Core::NextWakeupUs() const {
  return is_schedule_due_ ? FindNextWakeupUs() : wakeup_us_;
}

std::optional<int64_t> Core::FindNextWakeupUs() const {
  std::optional<int64_t> next = NextDeadlineUs(state_, presence_, policy_, now_us_);
  for (const std::optional<int64_t>& end_us :
       {doubts_.NextEndUs(now_us_), health_.NextEndUs(now_us_)})
    if (end_us.has_value()) next = std::min(next.value_or(*end_us), *end_us);
  return next;
}

}  // namespace assay::core
