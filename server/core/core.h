// The coordinator's mind: commands in; events, replies and effects out. No I/O, no clock, no lock;
// same State, commands and time give the same result.

#ifndef SERVER_CORE_CORE_H_
#define SERVER_CORE_CORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "server/core/command.h"
#include "server/core/doubts.h"
#include "server/core/effect.h"
#include "server/core/event.h"
#include "server/core/profile_health.h"
#include "server/core/types.h"

namespace assay::core {

// Limits of the scheduler; see SchedulerConfig in config.proto.
struct Policy {
  int64_t suspect_after_us = 10LL * 1000 * 1000;
  int64_t lost_after_us = 15LL * 60 * 1000 * 1000;
  // A run that outlives run_timeout by this much has an agent that did not stop it.
  int64_t run_timeout_grace_us = 5LL * 60 * 1000 * 1000;
  int32_t organization_run_limit = 0;  // runs at a time; 0: no limit
  std::map<std::string, int32_t> organization_run_limits;
  // What nodes are checked for before the runs of a set; without checks: nothing. By profile of the
  // launcher where one has a policy of its own.
  PreflightPolicy preflight;
  std::map<std::string, PreflightPolicy> profile_preflights;
  // From which every run's rendezvous token is derived. 32 random bytes, kept with the data.
  std::string secret;
};

// Events of one node that are new, as they shall be stored.
struct RunEventBatch {
  RunId run;
  std::vector<RunEvent> events;  // node_rank, receive_us and order filled in
};

// What one batch of commands came to. To be committed as a whole before anything of it is told.
struct Outcome {
  std::vector<absl::StatusOr<Reply>> replies;  // one per command, in order
  std::vector<RecordedEvent> events;
  std::vector<RunEventBatch> run_events;
  std::vector<Effect> effects;
  std::vector<std::string> may_start;  // workers whose throughput set has become ready
};

// Not thread-safe.
class Core {
 public:
  // Continues from `state` as loaded from the store. Every worker counts as seen at `now_us`: the
  // silence was ours.
  Core(Policy policy, State state, int64_t now_us);

  // Decides and applies each command in order, then schedules once. A refused command is an error
  // in `replies` and changes nothing. Afterwards state() holds everything that the outcome touched.
  // Commit that, then call DropRedundant, or on failure Reset; the commands may then be handled
  // again.
  Outcome Handle(const std::vector<Command>& commands, int64_t now_us);

  // What `command` is about, if it is not in memory but may be in the store: fetch it and Restore
  // it right before Handle. A submission that has ended, with its runs; or a run of one, of which
  // late evidence comes.
  using Target = std::variant<RunId, SubmissionId>;
  std::optional<Target> Missing(const Command& command) const;
  void Restore(Run run);
  void Restore(ClosedSubmission closed);

  // Drops from memory what has ended, now that it is in the store.
  void DropRedundant();

  // Replaces the state after a commit that was refused. Presence is kept.
  void Reset(State state);

  // All verdicts that are outstanding, for a coordinator that has just started. What the launcher
  // shall do follows when it has said that it is there.
  std::vector<Effect> PendingEffects() const;

  // What the worker should be doing, given its last report. Idle for an unknown worker.
  Desired DesiredFor(const std::string& worker) const;

  // The worker says nothing because its call is held, or was until just now: silence does not make
  // it SUSPECT before `until_us`.
  void Trust(const std::string& worker, int64_t until_us);

  // When to Handle a Tick at the latest, if no command comes; nullopt: never.
  std::optional<int64_t> NextWakeupUs() const;

  const State& state() const { return state_; }
  const Policy& policy() const { return policy_; }
  // By worker; of those that have called since the start.
  const std::map<std::string, Presence>& presence() const { return presence_; }

 private:
  std::optional<int64_t> FindNextWakeupUs() const;
  // Whether Schedule may find something to do since it was called last.
  bool IsScheduleDue() const;
  // One command of a batch: decided, recorded, applied.
  void HandleOne(const Command& command, Outcome* outcome);
  void Record(Event event, const std::string& principal, Outcome* outcome);
  void RecordAll(std::vector<Event> events, Outcome* outcome);
  void Schedule(Outcome* outcome);
  void FinishReplies(Outcome* outcome);
  void AskLauncher(Outcome* outcome);
  void HearLauncher(const LaunchReported& report, Outcome* outcome);
  void AdvanceSubmissions(Outcome* outcome);
  absl::StatusOr<Reply> Read(const ExplainSubmission& command) const;
  absl::StatusOr<Reply> Read(const PlanPlacement& command) const;
  absl::StatusOr<Reply> Read(const ListWorkers& command) const;
  absl::StatusOr<Reply> Read(const GetServerInfo& command) const;
  absl::Status Hear(const Synchronize& command);
  // After word from a node of the run: the workers that do not know yet that their throughput set
  // is ready. Looked for at each call, so that an answer that was lost is given again.
  void FindThoseWhoMayStart(RunId run, Outcome* outcome) const;

  const Policy policy_;
  State state_;
  std::map<std::string, Presence> presence_;
  int64_t now_us_ = 0;  // of the batch being handled, or handled last

  // A call of a worker that says what it said before changes nothing to schedule; most calls of a
  // large fleet are such, and looking at every worker for each of them is what they would cost.
  bool is_schedule_due_ = true;
  int64_t scheduled_at_us_ = 0;
  std::optional<int64_t>
      wakeup_us_;  // of NextWakeupUs then; nothing that was skipped made it earlier

  bool is_drop_due_ = true;            // the state has changed since DropRedundant
  std::set<RunId> restored_;           // in state_ until the next DropRedundant
  std::set<SubmissionId> to_advance_;  // touched since Schedule looked at them
  std::vector<std::pair<size_t, std::string>> synchronized_;  // replies that wait, and for whom

  // In memory only: a launcher is asked again after each start, and after a commit was refused.
  LauncherStarted launcher_;
  std::map<AllocationId, AllocationState> asked_;  // for what state of it, while nothing failed
  LeaseWaits waits_;
  Doubts doubts_;
  ProfileHealth health_;
  // Of a batch system, whose fate nobody has told since the start: perhaps their nodes are gone,
  // and what they did is still to come.
  std::set<AllocationId> unheard_;
  int64_t forgot_at_us_ = 0;  // when ForgetOld was asked last
};

}  // namespace assay::core

#endif  // SERVER_CORE_CORE_H_
