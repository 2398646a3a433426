// The coordinator's vocabulary as plain values: what proto/assay/v1/resources.proto says, without
// protobuf, plus what only the coordinator needs. Times are integer microseconds since 1970 (wall
// clock, UTC) unless the name says otherwise; zero means "not yet".

#ifndef SERVER_CORE_TYPES_H_
#define SERVER_CORE_TYPES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "common/rules/finding.h"
#include "common/rules/ruleset.h"
#include "server/core/allocation.h"
#include "server/core/id.h"
#include "server/core/node_figures.h"
#include "server/core/preflight.h"
#include "server/core/request.h"
#include "server/core/view.h"
#include "server/core/worker.h"
#include "server/core/workload.h"

namespace assay::core {

// Who causes what no caller asked for: lease expiry, placement, verdicts.
inline constexpr absl::string_view kCoordinator = "coordinator";

struct Hyperparameter {
  std::string key;         // under its mlperf-log key: opt_base_learning_rate
  std::string json_value;  // JSON text
  bool operator==(const Hyperparameter&) const = default;
};

// What a rule says about a log, a set or a request.
using rules::Finding;
using rules::Severity;

// ------------------------------------------------------------------------------------ submissions

// Says that the hyperparameters are another submitter's.
struct Borrowing {
  SubmissionId own;     // the entry in whose place they are used
  SubmissionId lender;  // whose they are
  bool operator==(const Borrowing&) const = default;
};

// What a set is scored by: how long its runs take one after the other, or how many models a minute
// it trains side by side (HPC rules, "Throughput").
inline constexpr absl::string_view kTimeToSolution = "time_to_solution";
inline constexpr absl::string_view kThroughput = "throughput";

// What a submitter asks for, with all defaults filled in. Immutable once accepted.
struct SubmissionSpec {
  std::string organization;
  std::string system;
  std::string benchmark;
  std::string division;  // closed | open
  std::string round;
  std::string dataset;  // id of a registered dataset
  int32_t node_count = 1;
  int32_t ranks_per_node = 1;
  int32_t run_count = 1;
  std::vector<Hyperparameter> hyperparameters;
  Workload workload;
  int32_t epoch_count_max = 128;
  std::string status;  // onprem | cloud | preview | research
  std::map<std::string, std::string> worker_labels;
  int32_t replacement_count_max = 0;
  int64_t run_timeout_ms = 24LL * 3600 * 1000;
  std::string staging = "node";  // node | none: whether nodes copy the dataset before reading it
  std::optional<Borrowing> borrowing;   // none: the hyperparameters are the submitter's own
  std::string metric{kTimeToSolution};  // kThroughput: the runs are instances, side by side
  std::string fleet;                    // a profile of the launcher; empty: what that gives to all
  bool allow_preemptible = false;       // its nodes may be taken away while a run goes
  int32_t minutes_per_run = 0;          // that one is expected to take; 0: not said
  bool operator==(const SubmissionSpec&) const = default;
};

// True if its runs are instances of one throughput set: all placed at once, none replaced.
bool IsThroughput(const SubmissionSpec& spec);

// The nodes that it must have at the same time: those of a run, or of all instances.
int64_t NodesAtOnce(const SubmissionSpec& spec);

// What the rule set of the round says that the coordinator and the trainer need, read once when the
// submission is accepted. A later change of a facility's round does not touch it.
struct RuleFacts {
  std::string digest;  // SHA-256 of the rule set
  bool is_mlperf_result = false;
  std::string label;               // for a facility's round: what it is and is not
  int32_t required_run_count = 1;  // fewer runs are refused
  double quality_target = 0;
  std::string quality_key;        // eval_error
  bool is_staging_timed = false;  // staging happens after run_start
  int64_t init_limit_ms = 0;      // from init_start on; 0: accepted before this was kept
  // What it fixes beyond hyperparameters: JSON text by the workload's names.
  std::map<std::string, std::string> fixed;
  std::optional<rules::Scoring> scoring;  // none: accepted before this was kept
  std::string rule_set_toml;              // a facility's own round, for judging live; else empty
  bool operator==(const RuleFacts&) const = default;
};

// What a weak-scaling set achieved, in place of a time to solution (rules specification, 5.2).
struct Throughput {
  int32_t model_count = 0;     // M': trained, and pass the check
  int32_t pruned_count = 0;    // left out by the submitter
  int64_t instance_scale = 0;  // S: units that trained one model; 0: not logged
  double time_to_all_minutes = 0;
  // The same by the coordinator's clock, from which each node's offset was measured when it
  // started; none where one was not.
  std::optional<double> corrected_minutes;
  double uncertainty_ms = 0;   // of corrected_minutes, at most
  double start_spread_ms = 0;  // from the first run_start to the last, by the better clock
  bool operator==(const Throughput&) const = default;
};

// A hyperparameter that a borrowing changed.
struct BorrowedHyperparameter {
  std::string key;
  std::string own_json;    // in the original entry; empty: not given
  std::string json_value;  // in this one; empty: not given any more
  std::string standing;    // "borrowed", "batch size"
  bool operator==(const BorrowedHyperparameter&) const = default;
};

// What was found when an entry with borrowed hyperparameters was accepted; that was when it was
// borrowed.
struct BorrowingRecord {
  int64_t own_created_at_us = 0;
  int64_t lender_created_at_us = 0;
  std::vector<BorrowedHyperparameter> changes;
  bool operator==(const BorrowingRecord&) const = default;
};

// How the runs of a set converged beside the reference's (rules specification, 4.5); see
// ReferenceConvergence in resources.proto.
struct Convergence {
  bool is_passed = false;
  std::string verdict;  // the word of the official summary: Pass, Fail, ...
  std::string message;  // the official checker's
  double normalization = 1;
  std::optional<double> mean_epochs;
  std::optional<double> min_epochs;
  std::optional<double> p_value;
  std::optional<double> normalized_minutes;  // the score times the normalization, where it passed
  std::string error;                         // not empty: why there is no verdict
  bool operator==(const Convergence&) const = default;
};

enum class SubmissionState { kOpen, kRunning, kChecking, kValid, kInvalid, kCancelled };

// What somebody has said about a submission.
struct Note {
  std::string author;        // principal
  std::string organization;  // of a submitter; empty otherwise
  int64_t at_us = 0;
  std::string text;
  bool operator==(const Note&) const = default;
};
inline constexpr size_t kNoteCountMax = 200;  // of a submission
inline constexpr int32_t kLeaseFailureCountMax = 3;

struct Submission {
  SubmissionId id;
  SubmissionSpec spec;
  RuleFacts rules;
  SubmissionState state = SubmissionState::kOpen;
  std::string state_reason;  // one sentence
  std::string submitter;     // principal that created it
  int64_t created_at_us = 0;
  int64_t ended_at_us = 0;
  std::optional<double> score_minutes;   // Olympic mean of time to solution
  std::optional<Throughput> throughput;  // of a weak-scaling set, which has no score_minutes
  bool is_imported = false;              // read-only history
  std::vector<RunId> runs;               // in order of their numbers
  std::vector<int64_t> seeds;            // seeds[n - 1] is for run number n; the rest is unused
  int32_t replacement_count = 0;         // runs queued so far in place of failed ones
  std::string scaling;                   // strong | weak, in imported rounds that tell them apart
  std::vector<Finding> findings;         // of the set as a whole
  std::string source_path;               // folder of an imported entry
  std::optional<BorrowingRecord> borrowing;  // where spec has one
  std::optional<Convergence> convergence;    // of a set that has been scored, where there is one
  std::vector<Note> notes;                   // oldest first; also after it has ended
  std::vector<RunId> pruned_runs;  // good instances that its submitter left out of the throughput
  // Allocations for its runs alone that ended before all of their workers had come, and how the
  // last did. After kLeaseFailureCountMax the scheduler asks for no other.
  int32_t lease_failure_count = 0;
  std::string lease_error;
  // A batch system's nodes whose agents did not come: not asked for again.
  std::vector<std::string> absent_hosts;
  std::vector<std::string> checked_nodes;  // that have passed a pre-flight for it
  std::string preflight_error;             // what the last pre-flight that failed has found
  std::string checked_gang;                // whose fabric has passed: GangKey (fabric.h)
  int64_t published_at_us = 0;  // from when on anybody may see it (visibility.h); 0: never
  int64_t withdrawn_at_us = 0;  // its submitter hands it in no more; 0: never
  std::string withdraw_reason;  // of that, with who has said it
  int64_t measured_at_us = 0;   // the first run_start of its logs; 0: there is none, or not yet
  std::string system_description_json;  // the file that an imported entry came with; empty: none
  bool operator==(const Submission&) const = default;
};

// ------------------------------------------------------------------------------------------- runs

enum class RunState {
  kQueued,
  kAssigned,   // a gang is told to execute it
  kRunning,    // every worker of the gang executes it
  kUploading,  // all trainers have ended well; the log is being checked
  kSucceeded,  // ended and judged; is_converged says whether it reached the target
  kFailed,     // state_reason says why
  kCancelled,
};

struct ArtifactRef {
  std::string file_name;  // result_3.txt
  std::string sha256;     // 64 lower-case hexadecimal digits; the artifact's id
  int64_t size_bytes = 0;
  bool operator==(const ArtifactRef&) const = default;
};

// What a log that is judged is called, and a program's source among a run's files.
inline constexpr absl::string_view kResultPrefix = "result_";
inline constexpr absl::string_view kSourceFileName = "source.tar";
// Which engines GPUs of a run computed with (assay.v1.EngineChoices as text), by rank 0.
inline constexpr absl::string_view kEnginesFileName = "engines.textproto";

// The source as an artifact of each run that has it.
ArtifactRef AsArtifact(const SourceArchive& source);

// What one worker of a gang has reported about its part of a run. Never goes backwards.
enum class NodePhase { kNone, kExecuting, kFinished };

struct RunNode {
  std::string worker;
  NodePhase phase = NodePhase::kNone;
  int32_t exit_code = 0;     // kFinished
  std::string reason;        // kFinished. The agent's sentence
  bool is_lost = false;      // given up by recorded decision: its worker stayed silent for too long
  bool is_released = false;  // the worker holds it no longer
  int64_t last_seq = 0;      // run events 1..last_seq of this node are durable
  int64_t clock_offset_us = 0;  // its clock minus the coordinator's, when it started the run
  int64_t clock_offset_uncertainty_us = 0;  // 0: the offset was not measured
  // Witnessed on this node, its own wall clock: by a process of the run, and by nobody knows whom.
  std::optional<int64_t> first_touch_us;
  std::optional<int64_t> observed_touch_us;
  bool operator==(const RunNode&) const = default;
};

// A switch whose power is counted by its maximum rating.
struct SwitchPower {
  std::string name;
  double watts = 0;
  bool operator==(const SwitchPower&) const = default;
};

// Facts that common/rules read from a run's log.
struct RunFacts {
  std::optional<bool> is_compliant;
  std::optional<bool> is_converged;
  std::optional<int64_t> run_start_ms;  // time_ms of the log's records
  std::optional<int64_t> run_stop_ms;
  std::optional<double> quality;  // last value before run_stop; may be NaN
  std::optional<int64_t> epoch_count;
  std::optional<int64_t> staging_ms;
  int64_t global_batch_size = 0;
  int64_t instance_scale = 0;  // nodes times accelerators, as logged; 0: unknown
  // From run_start to run_stop as they arrived on rank 0's node, by its hardware's clock.
  std::optional<int64_t> arrival_run_ms;
  std::optional<int64_t> time_error_us;       // the time by the log differs from it by no more
  std::optional<int64_t> coordinator_run_ms;  // the same by the coordinator's clock
  std::optional<int64_t> coordinator_error_us;
  // From run_start to run_stop by meters of all nodes, and how far it may be off for the time
  // between their readings.
  std::optional<double> energy_joules;
  std::optional<double> energy_error_joules;
  std::string energy_scope;  // node | components: what the meters are of; empty: there are none
  std::vector<SwitchPower> switches;  // whose energy over the run's time is in it, besides
  std::string touch_assurance;  // of the weakest node: proven | observed | self-reported; or empty
  std::vector<std::string> touch_hole_codes;  // of all nodes, in alphabetical order
  // From run_start to the first touch, by the clock of rank 0; and how far that may be off.
  std::optional<int64_t> touch_after_start_us;
  std::optional<int64_t> touch_error_us;
  std::vector<Finding> findings;
  bool operator==(const RunFacts&) const = default;
};

// The earliest touch of the dataset that a gang witnessed, by the clock of rank 0, which stamps
// run_start; and how far that may be off because it comes from another node.
struct GangTouch {
  int64_t at_us = 0;
  int64_t uncertainty_us = 0;
  bool operator==(const GangTouch&) const = default;
};

struct Run {
  RunId id;
  SubmissionId submission;
  int32_t number = 0;  // 1-based within its submission; the n of result_<n>.txt
  int64_t seed = 0;
  RunState state = RunState::kQueued;
  std::string state_reason;
  bool is_replaceable = false;  // FAILED, and not by a decision that a repetition would not change
  int64_t generation = 0;       // fencing token of its assignment; 0: never assigned
  std::vector<RunNode> nodes;   // the gang in rank order; empty until assigned
  // The machines of `nodes` as their launcher names them; empty: each worker is a node of its own.
  std::vector<std::string> node_names;
  AllocationId allocation;  // to which all of them belong; none: assigned before there were any
  // Of its workers, those whose caches had its dataset when it was placed, and mattered for it.
  std::vector<std::string> cached_workers;
  bool has_submitters_nodes = false;  // the submitter has started what watches it
  int64_t created_at_us = 0;
  int64_t assigned_at_us = 0;
  int64_t started_at_us = 0;
  int64_t ended_at_us = 0;
  std::optional<int32_t> exit_code;         // of the node whose end decided
  std::optional<GangTouch> first_touch;     // by a process of the run
  std::optional<GangTouch> observed_touch;  // by nobody knows whom: it accuses nobody
  RunFacts facts;
  std::vector<ArtifactRef> artifacts;
  std::vector<ArtifactRef> late_artifacts;  // came when it was sealed: kept, never judged
  bool operator==(const Run&) const = default;
};

// The earlier of a time (0: none yet) and the run_start that a log says, if it says a sane one.
int64_t EarlierStart(int64_t at_us, const RunFacts& facts);

inline bool IsTerminal(SubmissionState state) {
  return state == SubmissionState::kValid || state == SubmissionState::kInvalid ||
         state == SubmissionState::kCancelled;
}
// Until a run starts its seed is its worker's alone.
inline bool IsSeedShown(RunState state) {
  return state != RunState::kQueued && state != RunState::kAssigned;
}
inline bool IsTerminal(RunState state) {
  return state == RunState::kSucceeded || state == RunState::kFailed ||
         state == RunState::kCancelled;
}

// "result_3.txt": the log that is judged, written by rank 0.
std::string ResultFileName(const Run& run);

// The machines of its gang in rank order; a worker's name where nothing else is known. Empty until
// it is assigned.
std::vector<std::string> NodeNames(const Run& run);

// True if the node can no longer execute: it has finished, was given up or gave the run back. From
// then on its evidence is sealed: what still comes of it is kept apart as late. An agent reports
// FINISHED only when everything is delivered, so of a run that goes well nothing is late.
bool IsSettled(const RunNode& node);

// True if no node of the gang can still execute.
bool IsSettled(const Run& run);

// True if what `worker` sends of the run comes too late to count. Empty: of any of the gang.
bool IsSealed(const Run& run, const std::string& worker);

// UNAUTHENTICATED, with the remedy, if a certificate of `worker` that is of generation `presented`
// has been revoked: `valid_from` is the worker's certificate_generation.
absl::Status CheckCertificate(const std::string& worker, int64_t presented, int64_t valid_from);

// True if an exit code only says that something else went wrong: a peer was lost, or a stop came.
bool IsConsequence(int32_t exit_code);

// True if an exit code tells of a failure of the trainer itself: not of a lost peer, a signal, a
// stop or a node that lost the run, behind which another cause stands.
bool IsTrainerFailure(int32_t exit_code);

// True if a failed and settled run may be replaced: the infrastructure failed it. Of the native
// trainer, no node reports a failure. Others' programs may end in any way when a peer is gone: of
// these, the infrastructure has failed if a node was lost, and only then.
bool IsInfrastructureFailure(const Run& run, const Workload& workload);

// One thing that happened to a run on a node, in the node's own order.
enum class RunEventKind { kLogLine, kFirstTouch, kFinding, kProgress };

struct RunEvent {
  int64_t seq = 0;  // 1, 2, 3 ... without gaps, per (run, node_rank)
  RunEventKind kind = RunEventKind::kLogLine;
  std::string text;     // bytes
  int64_t wall_us = 0;  // worker's wall clock
  int64_t mono_ns = 0;  // worker's monotonic clock
  int64_t line = 0;     // 1-based line of the log
  std::optional<Finding> finding;
  // Filled in by the coordinator:
  int64_t receive_us = 0;
  int32_t node_rank = 0;
  int64_t order = 0;           // 1, 2, 3 ... over all nodes of the run, in order of commit
  bool is_late = false;        // came when its node was sealed: not part of what was judged
  bool is_attributed = false;  // kFirstTouch: by a process of the run
  bool operator==(const RunEvent&) const = default;
};

// ---------------------------------------------------------------------------------------- workers

enum class WorkerPhase { kIdle, kExecuting, kFinished };

// What a worker says it is doing. Level, not edge: it repeats until something changes.
struct WorkerReport {
  WorkerPhase phase = WorkerPhase::kIdle;
  RunId run;
  int64_t generation = 0;
  int32_t exit_code = 0;               // kFinished
  std::string reason;                  // kFinished
  std::vector<ArtifactRef> artifacts;  // kFinished. Already uploaded
  bool is_ready = false;               // kExecuting. All is done that comes before the ranks' start
  bool has_leave_to_start = false;     // kExecuting. It knows that the ranks may start
  PreflightReport preflight;
  std::optional<CacheReport> cache;  // none: its node has no cache
  bool operator==(const WorkerReport&) const = default;
};

// What is known of a worker's contact and lives in memory only: losing it costs nothing, because a
// restarted coordinator was itself the silent one.
struct Presence {
  int64_t last_seen_us = 0;
  int64_t clock_offset_us = 0;  // worker minus coordinator
  int64_t clock_offset_uncertainty_us = 0;
  bool is_reported = false;                    // `report` has come since the coordinator started
  WorkerReport report;                         // the last one
  std::vector<std::string> past_incarnations;  // whose late calls are refused
  std::optional<NodeFigures> figures;          // of the last call, as old as they were then
  int64_t figures_heard_at_us = 0;
  int64_t certificate_end_us = 0;  // of the certificate by which it called last; 0: not told
  bool operator==(const Presence&) const = default;
};

// --------------------------------------------------------------------------------------- datasets

struct Dataset {
  std::string id;  // cosmo32
  std::string benchmark;
  std::string path;    // absolute, the same on every worker
  std::string digest;  // of its manifest
  int64_t train_sample_count = 0;
  int64_t eval_sample_count = 0;
  std::string compression;  // gzip | none
  // What a workload must know of the samples: JSON text by the dataset format's names.
  std::map<std::string, std::string> parameters;
  bool operator==(const Dataset&) const = default;
};

// ------------------------------------------------------------------------------------------ state

// A submission that has ended, as the store has it.
struct ClosedSubmission {
  Submission submission;
  std::vector<Run> runs;  // all of them
};

// All that is alive. Closed submissions and their runs live in the store alone, once no worker
// holds one of the runs; so do ended allocations without workers, and what was forgotten. Written
// by Apply only.
struct State {
  int64_t last_seq = 0;         // of the event log
  int64_t last_submission = 0;  // the highest numbers given out
  int64_t last_run = 0;
  int64_t last_token = 0;
  int64_t last_allocation = 0;
  std::map<SubmissionId, Submission> submissions;
  std::map<RunId, Run> runs;
  std::map<std::string, Worker> workers;
  std::map<std::string, Dataset> datasets;
  std::map<ViewKey, View> views;
  std::map<TokenId, Token> tokens;
  std::map<AllocationId, Allocation> allocations;
  std::map<RequestKey, AnsweredRequest> requests;
  std::map<ImportSource, SubmissionId> imports;  // of all times
  // In the place of an entry, which entry borrows: of all times, but for what was cancelled. An
  // entry is replaced once.
  std::map<SubmissionId, SubmissionId> borrowings;
  std::map<RateKey, Rates> rates;         // of pre-flights
  std::map<PassedKey, Preflight> passed;  // last, of sets that have not ended
  // Derived from the above, for speed.
  std::set<RunId> queued;         // QUEUED
  std::set<RunId> active;         // ASSIGNED, RUNNING, UPLOADING
  std::set<SubmissionId> closed;  // ended, and still in `submissions`
  bool operator==(const State&) const = default;
};

// The states as proto, SQL and people read them: "OPEN", "UPLOADING", "LOST".
absl::string_view ToString(SubmissionState state);
absl::string_view ToString(RunState state);
absl::string_view ToString(WorkerState state);
absl::string_view ToString(RunEventKind kind);
absl::string_view ToString(NodePhase phase);

// The state that is written as `text`; nullopt if none is.
std::optional<SubmissionState> ParseSubmissionState(absl::string_view text);
std::optional<RunState> ParseRunState(absl::string_view text);

}  // namespace assay::core

#endif  // SERVER_CORE_TYPES_H_
