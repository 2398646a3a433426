// What has happened: the only thing that changes State, and what the event log keeps for ever.
//
// An event is a fact with all that Apply needs; it holds no pointer and no secret. kType and
// kVersion are part of the stored format: a changed meaning gets a new version, and the codec keeps
// reading the old one. Bulk data (log lines) is not here but in run_events; RunEventsAppended only
// says how far a node's events reach.

#ifndef SERVER_CORE_EVENT_H_
#define SERVER_CORE_EVENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/core/cache_event.h"
#include "server/core/labels.h"
#include "server/core/types.h"
#include "server/core/upkeep.h"
#include "server/core/withdrawal.h"

namespace assay::core {

// A submission with its first runs, all QUEUED; run k has number k and seed seeds[k - 1].
struct SubmissionCreated {
  static constexpr absl::string_view kType = "SubmissionCreated";
  static constexpr int kVersion = 1;
  SubmissionId submission;
  std::string request_id;
  SubmissionSpec spec;
  RuleFacts rules;
  std::vector<Finding> findings;
  std::vector<int64_t> seeds;
  RunId first_run;  // the others follow without gaps, spec.run_count in all
  std::optional<BorrowingRecord> borrowing;
  Standing standing;  // of the principal, for which request_id was chosen
  bool operator==(const SubmissionCreated&) const = default;
};

// Published history, whole: born closed.
struct SubmissionImported {
  static constexpr absl::string_view kType = "SubmissionImported";
  static constexpr int kVersion = 1;
  Submission submission;
  std::vector<Run> runs;
  bool operator==(const SubmissionImported&) const = default;
};

// All runs have ended; the score is being computed.
struct SubmissionCheckStarted {
  static constexpr absl::string_view kType = "SubmissionCheckStarted";
  static constexpr int kVersion = 1;
  SubmissionId submission;
  bool operator==(const SubmissionCheckStarted&) const = default;
};

struct SubmissionClosed {
  static constexpr absl::string_view kType = "SubmissionClosed";
  static constexpr int kVersion = 1;
  SubmissionId submission;
  SubmissionState state = SubmissionState::kInvalid;  // kValid, kInvalid or kCancelled
  std::string reason;
  std::optional<double> score_minutes;
  std::vector<Finding> findings;
  std::optional<Convergence> convergence;
  std::optional<Throughput> throughput;
  bool operator==(const SubmissionClosed&) const = default;
};

struct SubmissionNoted {
  static constexpr absl::string_view kType = "SubmissionNoted";
  static constexpr int kVersion = 1;
  SubmissionId submission;
  std::string request_id;  // may be empty
  std::string text;
  Standing standing;  // of who says it
  bool operator==(const SubmissionNoted&) const = default;
};

// From `published_at_us` on anybody may see it.
struct SubmissionPublished {
  static constexpr absl::string_view kType = "SubmissionPublished";
  static constexpr int kVersion = 1;
  SubmissionId submission;
  int64_t published_at_us = 0;
  bool operator==(const SubmissionPublished&) const = default;
};

// Its submitter has left good instances out of a throughput set, which has this verdict now.
struct InstancesPruned {
  static constexpr absl::string_view kType = "InstancesPruned";
  static constexpr int kVersion = 1;
  SubmissionId submission;
  std::vector<RunId> runs;
  Throughput throughput;
  std::optional<Convergence> convergence;
  std::string reason;  // the verdict's
  bool operator==(const InstancesPruned&) const = default;
};

// A run in place of `replaces`, which the infrastructure failed.
struct RunQueued {
  static constexpr absl::string_view kType = "RunQueued";
  static constexpr int kVersion = 1;
  RunId run;
  SubmissionId submission;
  RunId replaces;
  bool operator==(const RunQueued&) const = default;
};

struct RunAssigned {
  static constexpr absl::string_view kType = "RunAssigned";
  static constexpr int kVersion = 1;
  RunId run;
  int64_t generation = 0;
  std::vector<std::string> workers;  // in rank order
  AllocationId allocation;           // of all of them
  // Of `workers`, those whose node caches had the dataset; empty also where that does not matter.
  std::vector<std::string> cached_workers;
  bool operator==(const RunAssigned&) const = default;
};

// One worker of the gang executes its part.
struct NodeStarted {
  static constexpr absl::string_view kType = "NodeStarted";
  static constexpr int kVersion = 1;
  RunId run;
  int32_t node_rank = 0;
  int64_t clock_offset_us = 0;  // of the worker's clock at that time, for the evidence
  int64_t clock_offset_uncertainty_us = 0;
  bool operator==(const NodeStarted&) const = default;
};

// Every worker of the gang executes.
struct RunStarted {
  static constexpr absl::string_view kType = "RunStarted";
  static constexpr int kVersion = 1;
  RunId run;
  bool operator==(const RunStarted&) const = default;
};

struct NodeFinished {
  static constexpr absl::string_view kType = "NodeFinished";
  static constexpr int kVersion = 1;
  RunId run;
  int32_t node_rank = 0;
  int32_t exit_code = 0;
  std::string reason;
  bool operator==(const NodeFinished&) const = default;
};

// Its worker stayed silent for too long; what became of its part is unknown.
struct NodeGivenUp {
  static constexpr absl::string_view kType = "NodeGivenUp";
  static constexpr int kVersion = 1;
  RunId run;
  int32_t node_rank = 0;
  bool operator==(const NodeGivenUp&) const = default;
};

// Every node has finished well and everything is uploaded; the log is being judged.
struct RunUploaded {
  static constexpr absl::string_view kType = "RunUploaded";
  static constexpr int kVersion = 1;
  RunId run;
  bool operator==(const RunUploaded&) const = default;
};

// The log is judged: the run is SUCCEEDED, compliant and converged or not.
struct RunJudged {
  static constexpr absl::string_view kType = "RunJudged";
  static constexpr int kVersion = 1;
  RunId run;
  RunFacts facts;
  bool operator==(const RunJudged&) const = default;
};

struct RunFailed {
  static constexpr absl::string_view kType = "RunFailed";
  static constexpr int kVersion = 1;
  RunId run;
  std::string reason;
  std::optional<int32_t> exit_code;
  bool is_replaceable = true;  // false: a repetition would end the same way
  bool operator==(const RunFailed&) const = default;
};

// The rank that died has reported after one that merely noticed: the run's reason is now this.
struct RunFailureExplained {
  static constexpr absl::string_view kType = "RunFailureExplained";
  static constexpr int kVersion = 1;
  RunId run;
  std::string reason;
  std::optional<int32_t> exit_code;
  bool operator==(const RunFailureExplained&) const = default;
};

struct RunCancelled {
  static constexpr absl::string_view kType = "RunCancelled";
  static constexpr int kVersion = 1;
  RunId run;
  std::string reason;
  bool operator==(const RunCancelled&) const = default;
};

// Events first_seq..last_seq of a node are durable, in run_events.
struct RunEventsAppended {
  static constexpr absl::string_view kType = "RunEventsAppended";
  static constexpr int kVersion = 1;
  RunId run;
  int32_t node_rank = 0;
  int64_t first_seq = 0;
  int64_t last_seq = 0;
  std::optional<int64_t> first_touch_us;     // the earliest attributed FIRST_TOUCH among them
  bool is_late = false;                      // the node was sealed; then there are no touches
  std::optional<int64_t> observed_touch_us;  // the earliest that is not attributed
  bool operator==(const RunEventsAppended&) const = default;
};

struct ArtifactRecorded {
  static constexpr absl::string_view kType = "ArtifactRecorded";
  static constexpr int kVersion = 1;
  RunId run;
  ArtifactRef artifact;
  bool is_late = false;  // its worker was sealed
  bool operator==(const ArtifactRecorded&) const = default;
};

// A worker seen for the first time, or back after it had signed off.
struct WorkerRegistered {
  static constexpr absl::string_view kType = "WorkerRegistered";
  static constexpr int kVersion = 1;
  std::string worker;
  WorkerDescription description;
  bool operator==(const WorkerRegistered&) const = default;
};

struct WorkerDescribed {
  static constexpr absl::string_view kType = "WorkerDescribed";
  static constexpr int kVersion = 1;
  std::string worker;
  WorkerDescription description;
  bool operator==(const WorkerDescribed&) const = default;
};

struct WorkerStateChanged {
  static constexpr absl::string_view kType = "WorkerStateChanged";
  static constexpr int kVersion = 1;
  std::string worker;
  WorkerState state = WorkerState::kAlive;
  std::string reason;
  bool is_drain_requested = false;
  bool operator==(const WorkerStateChanged&) const = default;
};

// Certificates of the worker below this generation are refused; it is GONE.
struct WorkerRevoked {
  static constexpr absl::string_view kType = "WorkerRevoked";
  static constexpr int kVersion = 1;
  std::string worker;
  int64_t certificate_generation = 0;
  std::string reason;
  bool operator==(const WorkerRevoked&) const = default;
};

// The worker holds the run no longer: it is free.
struct WorkerReleased {
  static constexpr absl::string_view kType = "WorkerReleased";
  static constexpr int kVersion = 1;
  std::string worker;
  RunId run;
  bool operator==(const WorkerReleased&) const = default;
};

// The worker is to check its node for the runs of the submission. Its number is the event's.
struct PreflightStarted {
  static constexpr absl::string_view kType = "PreflightStarted";
  static constexpr int kVersion = 1;
  std::string worker;
  SubmissionId submission;
  std::vector<NodeCheck> checks;
  int32_t percent_of_median = 0;
  int64_t time_limit_us = 0;
  int64_t deadline_us = 0;
  GangPlace place;
  bool operator==(const PreflightStarted&) const = default;
};

struct PreflightFinished {
  static constexpr absl::string_view kType = "PreflightFinished";
  static constexpr int kVersion = 1;
  std::string worker;
  SubmissionId submission;
  PreflightState state = PreflightState::kPassed;
  std::string reason;
  std::string node_type;
  std::vector<NodeCheck> checks;  // as judged
  bool operator==(const PreflightFinished&) const = default;
};

struct TokenCreated {
  static constexpr absl::string_view kType = "TokenCreated";
  static constexpr int kVersion = 1;
  std::string request_id;
  Token token;
  Standing standing;  // of the principal, for which request_id was chosen
  bool operator==(const TokenCreated&) const = default;
};

struct TokenRevoked {
  static constexpr absl::string_view kType = "TokenRevoked";
  static constexpr int kVersion = 1;
  TokenId token;
  std::string worker;  // that used it up; empty: revoked by an operator
  bool operator==(const TokenRevoked&) const = default;
};

struct DatasetAdded {
  static constexpr absl::string_view kType = "DatasetAdded";
  static constexpr int kVersion = 1;
  Dataset dataset;
  bool operator==(const DatasetAdded&) const = default;
};

struct DatasetRemoved {
  static constexpr absl::string_view kType = "DatasetRemoved";
  static constexpr int kVersion = 1;
  std::string dataset;
  bool operator==(const DatasetRemoved&) const = default;
};

// Somebody, or the scheduler, wants nodes.
struct AllocationRequested {
  static constexpr absl::string_view kType = "AllocationRequested";
  static constexpr int kVersion = 1;
  AllocationId allocation;
  AllocationSpec spec;
  std::string reason;
  std::string request_id;  // of the principal; may be empty
  Standing standing;
  bool operator==(const AllocationRequested&) const = default;
};

// The launcher says which nodes it holds. Again, if these have changed.
struct AllocationGranted {
  static constexpr absl::string_view kType = "AllocationGranted";
  static constexpr int kVersion = 1;
  AllocationId allocation;
  std::vector<std::string> workers;
  int64_t deadline_us = 0;
  std::vector<std::string> hosts;  // of the workers, in their order; may be empty
  bool operator==(const AllocationGranted&) const = default;
};

// The batch system has taken what was asked for as a job of this number.
struct AllocationSubmitted {
  static constexpr absl::string_view kType = "AllocationSubmitted";
  static constexpr int kVersion = 1;
  AllocationId allocation;
  std::string job;
  bool operator==(const AllocationSubmitted&) const = default;
};

// A node of the allocation's job has got the certificate of this worker: it gets no other.
struct NodeEnrolled {
  static constexpr absl::string_view kType = "NodeEnrolled";
  static constexpr int kVersion = 1;
  AllocationId allocation;
  std::string worker;
  std::string host;
  bool operator==(const NodeEnrolled&) const = default;
};

// The launcher could not do what was asked; it is asked again at retry_at_us.
struct AllocationLaunchFailed {
  static constexpr absl::string_view kType = "AllocationLaunchFailed";
  static constexpr int kVersion = 1;
  AllocationId allocation;
  std::string error;
  int64_t retry_at_us = 0;
  bool operator==(const AllocationLaunchFailed&) const = default;
};

// Every worker of the allocation has called.
struct AllocationActivated {
  static constexpr absl::string_view kType = "AllocationActivated";
  static constexpr int kVersion = 1;
  AllocationId allocation;
  bool operator==(const AllocationActivated&) const = default;
};

// Its nodes shall be given back.
struct AllocationReleasing {
  static constexpr absl::string_view kType = "AllocationReleasing";
  static constexpr int kVersion = 1;
  AllocationId allocation;
  std::string reason;
  // Whose agents did not come: the submission's next allocation shall not have them.
  std::vector<std::string> absent_hosts = {};
  bool operator==(const AllocationReleasing&) const = default;
};

struct AllocationEnded {
  static constexpr absl::string_view kType = "AllocationEnded";
  static constexpr int kVersion = 1;
  AllocationId allocation;
  std::string reason;
  SubmissionId submission;  // for whose runs it was, if it ended before it could serve any
  bool operator==(const AllocationEnded&) const = default;
};

// From now on the worker belongs to the allocation.
struct WorkerJoined {
  static constexpr absl::string_view kType = "WorkerJoined";
  static constexpr int kVersion = 1;
  std::string worker;
  AllocationId allocation;
  bool operator==(const WorkerJoined&) const = default;
};

// Nothing refers to the worker any more: it leaves memory.
struct WorkerForgotten {
  static constexpr absl::string_view kType = "WorkerForgotten";
  static constexpr int kVersion = 1;
  std::string worker;
  bool operator==(const WorkerForgotten&) const = default;
};

// Tokens that have been useless for kRememberUs leave memory.
struct TokensForgotten {
  static constexpr absl::string_view kType = "TokensForgotten";
  static constexpr int kVersion = 1;
  std::vector<TokenId> tokens;
  bool operator==(const TokensForgotten&) const = default;
};

// Requests that were answered kRememberUs ago or earlier: who repeats one of these asks anew.
struct RequestsForgotten {
  static constexpr absl::string_view kType = "RequestsForgotten";
  static constexpr int kVersion = 1;
  std::vector<RequestKey> requests;
  bool operator==(const RequestsForgotten&) const = default;
};

// An operator went on although acknowledged events are missing: the database or its write-ahead log
// was lost, damaged, or an older copy was put back. No number up to those here is given again.
struct DataLossAccepted {
  static constexpr absl::string_view kType = "DataLossAccepted";
  static constexpr int kVersion = 1;
  int64_t first_lost_seq = 0;  // 0: it is not known, or nothing of the log
  int64_t last_lost_seq = 0;
  int64_t last_submission = 0;
  int64_t last_run = 0;
  int64_t last_token = 0;
  std::string reason;
  bool operator==(const DataLossAccepted&) const = default;
};

using Event = std::variant<
    SubmissionCreated, SubmissionImported, SubmissionCheckStarted, SubmissionClosed,
    SubmissionNoted, SubmissionPublished, SubmissionWithdrawn, InstancesPruned, RunQueued,
    RunAssigned, NodeStarted, RunStarted, NodeFinished, NodeGivenUp, RunUploaded, RunJudged,
    RunFailed, RunFailureExplained, RunCancelled, RunEventsAppended, ArtifactRecorded,
    WorkerRegistered, WorkerDescribed, WorkerStateChanged, WorkerRevoked, WorkerLabelled,
    WorkerReleased, PreflightStarted, PreflightFinished, TokenCreated, TokenRevoked, DatasetAdded,
    DatasetRemoved, ViewSaved, ViewRemoved, CacheOrdered, CacheOrderEnded, CacheOrderPostponed,
    CacheOrderRetried, AllocationRequested, AllocationSubmitted, AllocationGranted,
    AllocationLaunchFailed, AllocationActivated, AllocationReleasing, AllocationEnded, WorkerJoined,
    NodeEnrolled, WorkerForgotten, TokensForgotten, RequestsForgotten, StoreBackedUp,
    ArtifactsPruned, CallsRefused, DataLossAccepted>;

// An event in its place in the log.
struct RecordedEvent {
  int64_t seq = 0;  // 1, 2, 3 ... without gaps, but for those that DataLossAccepted tells of
  int64_t at_us = 0;
  std::string principal;    // who caused it
  SubmissionId submission;  // that it concerns; none: none
  RunId run;
  Event event;
  bool operator==(const RecordedEvent&) const = default;
};

// "RunAssigned"
absl::string_view TypeOf(const Event& event);

}  // namespace assay::core

#endif  // SERVER_CORE_EVENT_H_
