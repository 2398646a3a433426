// Decisions about workers and what they deliver.

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/core/allocate.h"
#include "server/core/cache_orders.h"
#include "server/core/decide.h"
#include "server/core/node_checks.h"
#include "server/core/schedule.h"

namespace assay::core {
namespace {

WorkerState Awake(const Worker& worker) {
  return worker.is_drain_requested ? WorkerState::kDraining : WorkerState::kAlive;
}

// The rank of `worker` in the gang of `run`; -1 if it is not of it.
int32_t RankOf(const Run& run, const std::string& worker) {
  for (size_t rank = 0; rank < run.nodes.size(); ++rank)
    if (run.nodes[rank].worker == worker) return static_cast<int32_t>(rank);
  return -1;
}

Event Started(const Run& run, int32_t rank, const Synchronize& command) {
  return NodeStarted{.run = run.id,
                     .node_rank = rank,
                     .clock_offset_us = command.clock_offset_us,
                     .clock_offset_uncertainty_us = command.clock_offset_uncertainty_us};
}

Event Finished(const Run& run, int32_t rank, const WorkerReport& report) {
  return NodeFinished{.run = run.id,
                      .node_rank = rank,
                      .exit_code = report.exit_code,
                      .reason = report.reason.substr(0, kTextBytesMax)};
}

// The worker holds `run` and reports about it.
void HearOfHeldRun(const Run& run, const Synchronize& command, std::vector<Event>* events) {
  const int32_t rank = RankOf(run, command.worker);
  const RunNode& node = run.nodes[static_cast<size_t>(rank)];
  if (node.phase == NodePhase::kNone) events->push_back(Started(run, rank, command));
  if (command.report.phase == WorkerPhase::kFinished && node.phase != NodePhase::kFinished)
    events->push_back(Finished(run, rank, command.report));
}

// The worker holds `run` but says that it does nothing. Before it has started that is normal; after
// it has finished it gives the run back. In between, only an agent that was started anew and has
// lost its record can say so; from any other it is an old message that comes late.
void HearOfIdleness(const Worker& worker, const Run& run, const Synchronize& command,
                    std::vector<Event>* events) {
  const RunNode& node = run.nodes[static_cast<size_t>(RankOf(run, worker.name))];
  const bool is_new_agent = command.description.incarnation != worker.description.incarnation;
  const bool has_forgotten = node.phase == NodePhase::kExecuting && is_new_agent;
  const bool has_declined = node.phase == NodePhase::kNone && command.is_leaving;
  const bool is_over = node.phase == NodePhase::kFinished ||
                       (node.phase == NodePhase::kNone && IsTerminal(run.state));
  if (!has_forgotten && !has_declined && !is_over) return;
  if (!is_over && !IsTerminal(run.state)) {
    events->push_back(RunFailed{
        .run = run.id,
        .reason = absl::StrCat("worker ", worker.name,
                               has_forgotten ? " was started anew and knows nothing of the run"
                                             : " signed off before it started the run")});
  }
  events->push_back(WorkerReleased{.worker = worker.name, .run = run.id});
}

// What comes back of a run that the worker does not hold any more is evidence, nothing else.
void HearOfOtherRun(const State& state, const Synchronize& command, std::vector<Event>* events) {
  const auto it = state.runs.find(command.report.run);
  if (command.report.phase != WorkerPhase::kFinished || it == state.runs.end()) return;
  const Run& run = it->second;
  const int32_t rank = RankOf(run, command.worker);
  if (rank < 0 || run.generation != command.report.generation) return;
  if (run.nodes[static_cast<size_t>(rank)].phase != NodePhase::kFinished)
    events->push_back(Finished(run, rank, command.report));
}

void HearReport(const State& state, const Worker& worker, const Synchronize& command,
                std::vector<Event>* events) {
  const WorkerReport& report = command.report;
  const bool is_idle = report.phase == WorkerPhase::kIdle;
  if (worker.run.is_none()) {
    HearOfOtherRun(state, command, events);
  } else if (is_idle) {
    HearOfIdleness(worker, state.runs.at(worker.run), command, events);
  } else if (report.run == worker.run && report.generation == worker.generation) {
    HearOfHeldRun(state.runs.at(worker.run), command, events);
  } else {
    HearOfOtherRun(state, command, events);
  }
}

// What the call says about the worker itself.
void HearOfWorker(const Worker& worker, const Synchronize& command, std::vector<Event>* events) {
  if (worker.state == WorkerState::kGone) {
    events->push_back(WorkerRegistered{.worker = worker.name, .description = command.description});
    return;
  }
  if (!(worker.description == command.description))
    events->push_back(WorkerDescribed{.worker = worker.name, .description = command.description});
  if (worker.state == WorkerState::kSuspect || worker.state == WorkerState::kLost)
    events->push_back(WorkerStateChanged{.worker = worker.name,
                                         .state = Awake(worker),
                                         .reason = "it is back",
                                         .is_drain_requested = worker.is_drain_requested});
}

// True if the worker holds nothing once `events` have happened.
bool IsFree(const Worker& worker, const std::vector<Event>& events) {
  return worker.run.is_none() || std::any_of(events.begin(), events.end(), [](const Event& event) {
           return std::holds_alternative<WorkerReleased>(event);
         });
}

absl::StatusOr<const Run*> FindRun(const State& state, RunId id, int64_t generation) {
  const auto it = state.runs.find(id);
  if (it == state.runs.end())
    return absl::NotFoundError(absl::StrCat("there is no run ", id.ToString()));
  if (it->second.generation != generation || generation == 0)
    return absl::AbortedError(absl::StrCat("run ", id.ToString(), " is at generation ",
                                           it->second.generation, ", not ", generation));
  return &it->second;
}

absl::Status CheckConsecutive(const std::vector<RunEvent>& events) {
  if (events.size() > kAppendCountMax)
    return absl::InvalidArgumentError(
        absl::StrCat("a batch has at most ", kAppendCountMax, " events, not ", events.size()));
  constexpr int64_t kSeqMax = std::numeric_limits<int64_t>::max() - int64_t{kAppendCountMax};
  if (!events.empty() && events[0].seq > kSeqMax)
    return absl::InvalidArgumentError(absl::StrCat("seq: expected at most ", kSeqMax));
  for (size_t i = 0; i < events.size(); ++i) {
    const int64_t expected = events[0].seq + static_cast<int64_t>(i);
    if (events[i].seq != expected || expected < 1)
      return absl::InvalidArgumentError(
          absl::StrCat("events of a batch are consecutive from 1: expected ", expected, ", found ",
                       events[i].seq));
  }
  return absl::OkStatus();
}

// Times that can be subtracted from each other.
absl::Status CheckClock(absl::string_view field, int64_t time_us) {
  if (time_us >= -kTimeUsMax && time_us <= kTimeUsMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", time_us, ": no clock differs by more than ", kTimeUsMax, " us"));
}

std::optional<int64_t> EarliestTouch(const std::vector<RunEvent>& events, bool is_attributed) {
  std::optional<int64_t> earliest;
  for (const RunEvent& event : events) {
    if (event.kind == RunEventKind::kFirstTouch && event.is_attributed == is_attributed)
      earliest = std::min(earliest.value_or(event.wall_us), event.wall_us);
  }
  return earliest;
}

absl::Status CheckArtifact(const ArtifactRef& artifact) {
  const bool is_hex = std::all_of(artifact.sha256.begin(), artifact.sha256.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
  });
  if (artifact.sha256.size() != 64 || !is_hex)
    return absl::InvalidArgumentError("an artifact's sha256 is 64 lower-case hexadecimal digits");
  const std::string& name = artifact.file_name;
  if (name.empty() || name.size() > 255 || name == "." || name == ".." ||
      name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
    return absl::InvalidArgumentError("an artifact's file_name is one name, without slashes");
  if (artifact.size_bytes < 0)
    return absl::InvalidArgumentError("an artifact's size_bytes is not negative");
  return absl::OkStatus();
}

// True if the run has exactly this artifact, be it as late.
bool IsKnown(const Run& run, const ArtifactRef& artifact) {
  const auto has = [&artifact](const std::vector<ArtifactRef>& artifacts) {
    return std::find(artifacts.begin(), artifacts.end(), artifact) != artifacts.end();
  };
  return has(run.artifacts) || has(run.late_artifacts);
}

absl::Status CheckNameIsFree(const Run& run, const std::string& file_name) {
  const bool is_taken =
      std::any_of(run.artifacts.begin(), run.artifacts.end(),
                  [&](const ArtifactRef& known) { return known.file_name == file_name; });
  if (!is_taken) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("run ", run.id.ToString(), " has ", file_name, " with other content already"));
}

absl::StatusOr<const Worker*> FindWorker(const State& state, const std::string& name) {
  const auto it = state.workers.find(name);
  if (it == state.workers.end())
    return absl::NotFoundError(absl::StrCat("there is no worker ", name));
  return &it->second;
}

// Enrolment tokens by which the worker could come back, not looking at their end.
std::vector<TokenId> UnusedEnrolments(const State& state, const std::string& worker) {
  std::vector<TokenId> ids;
  for (const auto& [id, token] : state.tokens) {
    if (token.kind == TokenKind::kEnrol && token.principal == worker && !token.is_revoked)
      ids.push_back(id);
  }
  return ids;
}

// True if somebody has called under that name, or was ever allowed to enrol under it.
bool IsKnown(const State& state, const std::string& worker) {
  return state.workers.count(worker) > 0 ||
         std::any_of(state.tokens.begin(), state.tokens.end(), [&worker](const auto& entry) {
           return entry.second.kind == TokenKind::kEnrol && entry.second.principal == worker;
         });
}

}  // namespace

absl::StatusOr<Decision> Decide(const Context& context, const Synchronize& command) {
  RETURN_IF_ERROR(CheckName("worker", command.worker));
  if (command.description.incarnation.empty())
    return absl::InvalidArgumentError("incarnation is missing; choose one at each start");
  RETURN_IF_ERROR(CheckClock("clock_offset_us", command.clock_offset_us));
  RETURN_IF_ERROR(CheckClock("clock_offset_uncertainty_us", command.clock_offset_uncertainty_us));
  RETURN_IF_ERROR(CheckLease(context.state, command));
  RETURN_IF_ERROR(CheckReport(command.report.preflight));
  RETURN_IF_ERROR(CheckCacheReport(command.report.cache));
  Decision decision{.reply = SynchronizeReply{}};
  std::vector<Event>* events = &decision.events;
  const auto it = context.state.workers.find(command.worker);
  const Worker unknown{.name = command.worker, .state = WorkerState::kGone};
  const Worker& worker = it == context.state.workers.end() ? unknown : it->second;
  const bool is_farewell = command.is_leaving && command.report.phase == WorkerPhase::kIdle;
  if (is_farewell && worker.state == WorkerState::kGone) return decision;

  HearOfWorker(worker, command, events);
  HearPreflight(context.state, worker, command, events);
  HearCache(worker, command, context.now_us, events);
  HearReport(context.state, worker, command, events);
  if (is_farewell && IsFree(worker, *events))
    events->push_back(WorkerStateChanged{.worker = worker.name,
                                         .state = WorkerState::kGone,
                                         .reason = "it signed off",
                                         .is_drain_requested = worker.is_drain_requested});
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const AppendRunEvents& command) {
  ASSIGN_OR_RETURN(const Run* run, FindRun(context.state, command.run, command.generation));
  if (command.node_rank < 0 || static_cast<size_t>(command.node_rank) >= run->nodes.size())
    return absl::InvalidArgumentError(absl::StrCat(
        "node_rank: expected 0 to ", run->nodes.size() - 1, ", found ", command.node_rank));
  const RunNode& node = run->nodes[static_cast<size_t>(command.node_rank)];
  if (!command.worker.empty() && command.worker != node.worker)
    return absl::PermissionDeniedError(absl::StrCat("rank ", command.node_rank, " of run ",
                                                    command.run.ToString(), " is ", node.worker));
  RETURN_IF_ERROR(CheckConsecutive(command.events));
  for (const RunEvent& event : command.events)
    RETURN_IF_ERROR(CheckClock("wall_us", event.wall_us));

  Decision decision{.reply = AppendReply{.durable_seq = node.last_seq}};
  if (command.events.empty() || command.events.back().seq <= node.last_seq) return decision;
  if (command.events.front().seq > node.last_seq + 1)
    return absl::AbortedError(
        absl::StrCat("events of run ", command.run.ToString(), " rank ", command.node_rank,
                     " continue at seq ", node.last_seq + 1, ", not ", command.events.front().seq));
  const int64_t known_count = node.last_seq + 1 - command.events.front().seq;
  decision.run_events.assign(command.events.begin() + known_count, command.events.end());
  int64_t order = 0;
  for (const RunNode& other : run->nodes)
    order += other.last_seq;
  const bool is_late = IsSettled(node);
  for (RunEvent& event : decision.run_events) {
    event.is_late = is_late;
    event.node_rank = command.node_rank;
    event.receive_us = context.now_us;
    event.order = ++order;
  }
  const int64_t last_seq = decision.run_events.back().seq;
  RunEventsAppended appended{.run = command.run,
                             .node_rank = command.node_rank,
                             .first_seq = node.last_seq + 1,
                             .last_seq = last_seq,
                             .is_late = is_late};
  if (!is_late) {
    appended.first_touch_us = EarliestTouch(decision.run_events, /*is_attributed=*/true);
    appended.observed_touch_us = EarliestTouch(decision.run_events, /*is_attributed=*/false);
  }
  decision.events.push_back(std::move(appended));
  decision.reply = AppendReply{.durable_seq = last_seq};
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const RecordArtifact& command) {
  ASSIGN_OR_RETURN(const Run* run, FindRun(context.state, command.run, command.generation));
  if (!command.worker.empty() && RankOf(*run, command.worker) < 0)
    return absl::PermissionDeniedError(absl::StrCat(
        "worker ", command.worker, " is not of the gang of run ", command.run.ToString()));
  RETURN_IF_ERROR(CheckArtifact(command.artifact));
  Decision decision{.reply = command.artifact};
  if (IsKnown(*run, command.artifact)) return decision;
  const bool is_late = IsSealed(*run, command.worker);
  if (!is_late) RETURN_IF_ERROR(CheckNameIsFree(*run, command.artifact.file_name));
  const size_t most = ArtifactCountMax(run->nodes.size());
  if (run->artifacts.size() + run->late_artifacts.size() >= most)
    return absl::ResourceExhaustedError(absl::StrCat("run ", command.run.ToString(), " has ", most,
                                                     " artifacts, and may not have more"));
  decision.events.push_back(
      ArtifactRecorded{.run = command.run, .artifact = command.artifact, .is_late = is_late});
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const AuthorizeUpload& command) {
  RETURN_IF_ERROR(Decide(context, command.record).status());
  return Decision{.reply = Done{}};
}

absl::StatusOr<Decision> Decide(const Context& context, const DrainWorker& command) {
  ASSIGN_OR_RETURN(const Worker* worker, FindWorker(context.state, command.worker));
  Decision decision{.reply = *worker};
  if (worker->is_drain_requested) return decision;
  const bool is_away = worker->state == WorkerState::kLost || worker->state == WorkerState::kGone;
  const WorkerState target = is_away ? worker->state : WorkerState::kDraining;
  const std::string reason = command.reason.substr(0, kTextBytesMax);
  decision.events.push_back(WorkerStateChanged{
      .worker = worker->name, .state = target, .reason = reason, .is_drain_requested = true});
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const ResumeWorker& command) {
  ASSIGN_OR_RETURN(const Worker* worker, FindWorker(context.state, command.worker));
  if (!worker->is_drain_requested)
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", worker->name, " is ", ToString(worker->state), ", not DRAINING"));
  const bool is_draining = worker->state == WorkerState::kDraining;
  Decision decision{.reply = *worker};
  decision.events.push_back(
      WorkerStateChanged{.worker = worker->name,
                         .state = is_draining ? WorkerState::kAlive : worker->state,
                         .reason = "",
                         .is_drain_requested = false});
  return decision;
}

absl::StatusOr<Decision> Decide(const Context& context, const RevokeWorker& command) {
  RETURN_IF_ERROR(CheckName("worker", command.worker));
  const State& state = context.state;
  const bool has_left_memory = !state.workers.contains(command.worker) && command.past.has_value();
  if (!has_left_memory && !IsKnown(state, command.worker))
    return absl::NotFoundError(absl::StrCat("there is no worker ", command.worker,
                                            ": nobody has called or may enrol under that name"));
  const auto it = state.workers.find(command.worker);
  const Worker unknown{.name = command.worker};
  const Worker& worker = it == state.workers.end() ? unknown : it->second;
  Decision decision{.reply = worker};
  if (has_left_memory)
    decision.events.push_back(
        WorkerRegistered{.worker = command.worker, .description = *command.past});
  Lose(state, worker, absl::StrCat("the certificate of worker ", worker.name, " was revoked"),
       &decision.events);
  for (const TokenId token : UnusedEnrolments(state, worker.name))
    decision.events.push_back(TokenRevoked{.token = token});
  decision.events.push_back(WorkerRevoked{
      .worker = worker.name,
      .certificate_generation = worker.certificate_generation + 1,
      .reason = command.reason.empty() ? "its certificates were revoked"
                                       : absl::StrCat("its certificates were revoked: ",
                                                      command.reason.substr(0, kTextBytesMax))});
  return decision;
}

}  // namespace assay::core
