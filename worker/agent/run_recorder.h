// Turns what happens in a run's directory into events in the run's spool: each line of the log, the
// first touch, live findings, progress. One per held run; it can be made anew at any time (after a
// crash of the agent) and carries on without a gap and without a repeat.

#ifndef WORKER_AGENT_RUN_RECORDER_H_
#define WORKER_AGENT_RUN_RECORDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "assay/v1/resources.pb.h"
#include "assay/v1/run_spec.pb.h"

#include "common/clock.h"
#include "common/rules/check.h"
#include "common/rules/ruleset.h"
#include "worker/agent/event_spool.h"
#include "worker/agent/log_tail.h"
#include "worker/agent/machine.h"
#include "worker/agent/run_directory.h"
#include "worker/agent/workload/workload.h"

namespace assay::agent {

// Not thread-safe, but for spool().
class RunRecorder {
 public:
  // Opens the spool and replays the log up to where the spool ends. INVALID_ARGUMENT if the spec
  // does not parse or says nothing that this agent can do; then there is nothing to record. `clock`
  // must outlive the recorder.
  static absl::StatusOr<std::unique_ptr<RunRecorder>> Open(const RunDirectory& directory,
                                                           const RunKey& key, const Clock* clock);

  // Takes in what is new in the directory. Events are in the spool's memory until Sync.
  //   exit: how the step ended; nothing will be written to the directory any more.
  absl::Status Observe(const std::optional<StepExit>& exit);

  // fsync, if there is something to sync: when kSyncEvents wait, when the oldest has waited for
  // kSyncDelay, or when the run has ended. True if events became durable.
  absl::StatusOr<bool> SyncIfDue();
  // When SyncIfDue is to be called at the latest; nullopt: nothing waits.
  std::optional<MonoTime> sync_due() const;

  // What the machine is to be told; `exit` as given to Observe.
  RunObserved Observation(bool is_started, const std::optional<StepExit>& exit) const;

  // What is to be uploaded, once the run has ended: files that exist.
  std::vector<ArtifactFile> Artifacts() const;

  // What the log says so far; nullopt: it is on another node, or its rules are not known.
  std::optional<rules::Facts> Facts() const {
    return checker_.has_value() ? std::optional(checker_->facts()) : std::nullopt;
  }

  const std::shared_ptr<EventSpool>& spool() const { return spool_; }
  const v1::RunSpec& spec() const { return spec_; }
  int32_t node_rank() const { return spec_.node_rank(); }

  static constexpr int kSyncEvents = 256;
  static constexpr absl::Duration kSyncDelay = absl::Milliseconds(100);

 private:
  RunRecorder(RunDirectory directory, RunKey key, const Clock* clock)
      : directory_(std::move(directory)), key_(std::move(key)), clock_(clock) {}
  absl::Status Load();
  absl::Status LoadRules();
  absl::Status Replay(const SourcePosition& position);
  void Recall(const v1::RunEvent& event);
  absl::Status ReadLog(bool is_final);
  absl::Status ReadProgress(bool is_final);
  // One of the two touches that a step may leave.
  struct WitnessedTouch {
    std::optional<Touch> touch;
    bool is_spooled = false;
    bool is_checked = false;
  };
  void ReadTouch(const std::string& path, WitnessedTouch* witnessed);
  void AddLine(const TailLine& line);
  void CheckTouch(bool is_final, WitnessedTouch* witnessed);
  void ReadPauses(bool is_final);
  void ReadFaults(const std::string& path);
  void AddNodeFinding(const NodeFault& fault);
  void LookAtStage(absl::Time start);
  void AddFindings(const std::vector<rules::Finding>& findings, int64_t line);
  void Append(v1::RunEvent event);

  const RunDirectory directory_;
  const RunKey key_;
  const Clock* const clock_;
  v1::RunSpec spec_;
  std::unique_ptr<const Workload> workload_;
  std::shared_ptr<EventSpool> spool_;                // shared with the courier, which reads it
  std::unique_ptr<const rules::RuleSet> own_rules_;  // a facility's round
  std::optional<rules::LiveChecker> checker_;        // none: no rules known, or no log here
  std::optional<LogTail> log_;                       // node rank 0
  std::optional<LogTail> progress_;                  // node rank 0
  SourcePosition position_;
  WitnessedTouch attributed_;
  WitnessedTouch observed_;
  bool is_stage_checked_ = false;
  bool is_complete_ = false;
  std::set<std::string> known_findings_;  // serialized: never spooled twice
  std::optional<MonoTime> sync_due_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_RUN_RECORDER_H_
