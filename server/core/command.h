// What can be asked of the core: an RPC already converted and authorised, or an internal fact.
//
// Each command carries all that is not determined by State: who asks, seeds, hashes of secrets,
// what the rules say. The time comes with the batch. So deciding is a pure function.

#ifndef SERVER_CORE_COMMAND_H_
#define SERVER_CORE_COMMAND_H_

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/core/labels.h"
#include "server/core/node_figures.h"
#include "server/core/types.h"
#include "server/core/upkeep.h"
#include "server/core/visibility.h"
#include "server/core/withdrawal.h"

namespace assay::core {

// ------------------------------------------------------------------------------------ submissions

// Accepts a submission and queues its runs. Reply: SubmissionReply.
// Safe to repeat: the same request_id by the same principal, in the same role and organisation,
// gives the same submission.
// INVALID_ARGUMENT if `findings` or CheckFeasible has an ERROR, or the spec is out of bounds;
// NOT_FOUND for an unknown dataset; FAILED_PRECONDITION if that dataset is for another benchmark,
// or another entry borrows in place of the same one.
struct CreateSubmission {
  std::string request_id;
  SubmissionSpec spec;                       // defaults filled in
  RuleFacts rules;                           // of spec.round
  std::vector<Finding> findings;             // of the rules about the spec; an ERROR refuses it
  std::vector<int64_t> seeds;                // run_count + replacement_count_max, distinct, above 0
  std::optional<BorrowingRecord> borrowing;  // exactly where the spec has one
};

// Ends a submission; queued runs end at once, running ones are stopped. Reply: SubmissionReply.
// NOT_FOUND if there never was one; FAILED_PRECONDITION if it has ended.
struct CancelSubmission {
  SubmissionId submission;
  std::string reason;
};

// Says something about a submission, open or ended, to all who may see it. Nothing else about it
// changes. Reply: SubmissionReply. Safe to repeat with the same request_id. NOT_FOUND if there
// never was one; RESOURCE_EXHAUSTED if it has kNoteCountMax notes; INVALID_ARGUMENT without text.
struct NoteSubmission {
  std::string request_id;
  SubmissionId submission;
  std::string text;
};

// Leaves good instances out of a throughput set that is valid, once for ever (HPC rules,
// "Throughput"). The caller has scored what remains. Reply: SubmissionReply; the same runs again
// are a repetition. Otherwise as CheckPruning, and NOT_FOUND if there never was one.
struct PruneInstances {
  SubmissionId submission;
  std::vector<RunId> runs;
  Throughput throughput;
  std::optional<Convergence> convergence;
  std::string reason;
};

// Files published history. Reply: SubmissionReply; repeating (round, source_path) gives the first.
struct ImportSubmission {
  struct ImportedRun {
    ArtifactRef log;  // its bytes are stored already
    RunFacts facts;
    std::string file_name;  // as published: result_0.txt
  };
  SubmissionSpec spec;
  RuleFacts rules;
  std::string source_path;
  std::string scaling;
  std::vector<ImportedRun> runs;
  std::optional<double> score_minutes;   // neither: INVALID
  std::optional<Throughput> throughput;  //
  std::optional<Convergence> convergence;
  std::vector<Finding> findings;
  std::string reason;           // of the state, for people
  int64_t published_at_us = 0;  // of the submission
  std::string system_description_json;
};

// Lets anybody see a submission from a time on, for ever. Reply: SubmissionReply; repeating it
// changes nothing. NOT_FOUND if there never was one; FAILED_PRECONDITION if it has no verdict or is
// published under another time; INVALID_ARGUMENT for a time in the past of one that is not
// imported.
struct PublishSubmission {
  SubmissionId submission;
  int64_t at_us = 0;  // 0: now
};

// Why a submission waits. Reply: Explanation, which counts and names only what `viewer` sees beside
// it. Read only. NOT_FOUND if there never was one.
struct ExplainSubmission {
  SubmissionId submission;
  VisibleTo viewer = {};
};

// What the runs of a spec would wait for. Reply: PlacementReply, which counts runs that `viewer`
// sees. Read only.
struct PlanPlacement {
  SubmissionSpec spec;
  VisibleTo viewer = {};
};

// ---------------------------------------------------------------------------------------- workers

// A worker says what it does; the reply (SynchronizeReply) says what it should be doing. Registers
// the worker at first sight. INVALID_ARGUMENT for a bad name.
struct Synchronize {
  std::string worker;
  WorkerDescription description;
  WorkerReport report;
  int64_t clock_offset_us = 0;
  int64_t clock_offset_uncertainty_us = 0;
  bool is_leaving = false;
  int64_t poll_timeout_us = 0;  // the runtime may hold the reply this long while nothing changes
  std::optional<NodeFigures> figures{};
  int64_t certificate_end_us = 0;  // of the certificate by which it calls; 0: not told
};

// Events of one node of a run, consecutive. Reply: AppendReply. What is stored already is ignored.
// ABORTED on a gap, with the seq that is expected next, and for a generation that is not the run's;
// NOT_FOUND for an unknown run; INVALID_ARGUMENT for a node_rank outside the gang. Accepted also
// when the node's evidence is sealed (IsSealed); then it is kept as late and changes nothing.
struct AppendRunEvents {
  RunId run;
  int64_t generation = 0;
  int32_t node_rank = 0;
  std::vector<RunEvent> events;
  std::string worker;  // the caller; must hold that rank. Empty: not checked
};

// An artifact of a run is on stable storage. Reply: ArtifactRef. Repeating it changes nothing.
// ALREADY_EXISTS if the run has that file name with another digest. When the worker's evidence is
// sealed (IsSealed) the artifact is kept as late, whatever its name, and changes nothing.
struct RecordArtifact {
  RunId run;
  int64_t generation = 0;
  ArtifactRef artifact;
  std::string worker;  // the caller; must be of the gang. Empty: not checked
};

// Would RecordArtifact be accepted now? To be asked before the bytes are taken. Reply: Done. Read
// only. Errors of RecordArtifact.
struct AuthorizeUpload {
  RecordArtifact record;
};

// Takes a worker out of placement; its run goes on. Reply: Worker. NOT_FOUND.
struct DrainWorker {
  std::string worker;
  std::string reason;
};

// Undoes DrainWorker. Reply: Worker. NOT_FOUND; FAILED_PRECONDITION if it is not draining.
struct ResumeWorker {
  std::string worker;
};

// Makes all certificates of a worker useless, and its enrolment tokens that are not used yet: it is
// GONE until it enrols with a token made later. What it executes is given up, and its run fails as
// that of a lost worker does. Each call revokes anew. Reply: Worker. NOT_FOUND for a name under
// which nobody has called or may enrol.
struct RevokeWorker {
  std::string worker;
  std::string reason;
  std::optional<WorkerDescription> past;  // of a worker that has left memory, from the store
};

// All workers with their presence, of which figures are as old as they are now, and without what
// they do for submissions that `viewer` does not see. Reply: WorkersReply. Read only.
struct ListWorkers {
  // Without what does not change while runs go on, and is large: descriptions but for host and
  // sizes, orders, what was said of caches and pre-flights.
  bool is_brief = false;
  VisibleTo viewer = {};
};

// --------------------------------------------------------------------------------- administration

// Reply: Token. The secret stays with the caller. ALREADY_EXISTS if the request was served before:
// its secret was in the first reply and is nowhere else. UNAUTHENTICATED if the token by which it
// is made is useless.
struct CreateToken {
  std::string request_id;  // may be empty
  TokenKind kind = TokenKind::kAccess;
  std::string role;
  std::string principal;
  std::string organization;
  std::string secret_sha256;
  int64_t expires_at_us = 0;
  std::string made_by_sha256;  // of the token by which a browser's session is made; empty: none
};

// The tokens that were made by it end with it. Reply: Token. Repeating it changes nothing.
// NOT_FOUND.
struct RevokeToken {
  TokenId token;
};

// Uses up an enrolment token for `worker`. Reply: Token. PERMISSION_DENIED, without saying why to
// the caller beyond "unknown, used or expired", or if it is for another worker.
struct RedeemEnrolment {
  std::string secret_sha256;
  std::string worker;
};

// A node of a batch system's job, which has proven that it is one, asks for the certificate of
// `worker`. Reply: Allocation. UNAVAILABLE while nobody knows here whether the job runs: it may ask
// again. PERMISSION_DENIED, with the words, if the allocation has ended or is not of a job that the
// launcher got, if the job or the node is another, or if the node has enrolled before.
struct EnrolNode {
  AllocationId allocation;
  std::string job;   // 4711
  std::string node;  // n0, as the batch system knows it
  std::string worker;
};

// Reply: Dataset. Repeating it changes nothing; ALREADY_EXISTS if the id means something else.
struct AddDataset {
  Dataset dataset;
};

// Reply: Dataset. NOT_FOUND; FAILED_PRECONDITION while an open submission uses it.
struct RemoveDataset {
  std::string dataset;
};

// Keeps a question under a name, in the place of the author's own one of that name; author,
// standing and time are filled in. Reply: View. INVALID_ARGUMENT for a name, a kind or a filter
// that is none; RESOURCE_EXHAUSTED if the author has kViewCountMax.
struct SaveView {
  View view;
};

// One of the author's own. Reply: View. NOT_FOUND.
struct RemoveView {
  std::string name;
};

// Datasets shall be in the caches of nodes, shall not, or shall stay there. Reply: CachesReply. An
// order that is pending already and has not failed stays; it takes the place of the same or the
// opposite one. NOT_FOUND for an unknown dataset or worker; INVALID_ARGUMENT for a path that is not
// absolute, or of anything but kStage; FAILED_PRECONDITION for a worker that has left or has no
// cache, or if none has; RESOURCE_EXHAUSTED if a worker has kCacheOrderCountMax pending.
struct OrderCaches {
  std::string dataset;
  CacheAction action = CacheAction::kStage;
  std::vector<std::string> workers;  // empty: all that have a cache
  std::string path = {};             // kStage: on the nodes; empty: where it is registered
};

// Asks the launcher for nodes. Reply: Allocation. Safe to repeat as CreateSubmission is.
// FAILED_PRECONDITION if the launcher starts none, or has as many allocations as it can;
// INVALID_ARGUMENT if it has no such nodes; NOT_FOUND for an unknown or ended submission.
struct RequestAllocation {
  std::string request_id;  // may be empty
  AllocationSpec spec;     // launcher: empty, the configured one
  std::string reason;
};

// Gives nodes back: no further run starts on them, and when those that run have ended they go.
// Reply: Allocation. Repeatable. NOT_FOUND; FAILED_PRECONDITION for those that came by themselves.
struct ReleaseAllocation {
  AllocationId allocation;
  std::string reason;
};

// Reply: ServerInfo. Read only.
struct GetServerInfo {};

// ------------------------------------------------------------------------------- internal facts

// The rules have judged a run's log. Reply: Done. Ignored unless the run is UPLOADING.
struct LogChecked {
  RunId run;
  RunFacts facts;
  std::string error;  // the log could not be judged at all: the run fails with this reason
};

// The rules have judged a whole submission. Reply: Done. Ignored unless it is CHECKING.
struct SetScored {
  SubmissionId submission;
  std::optional<double> score_minutes;  // neither this nor throughput: INVALID
  std::vector<Finding> findings;
  std::string reason;
  std::optional<Convergence> convergence;
  std::optional<Throughput> throughput;
};

// Nodes of a submitter's own job, for the runs of one submission alone: an allocation that is
// granted at once, and an enrolment token for each of its workers. Joining again with a job of
// which no worker has called yet ends the allocation before. Reply: Allocation. NOT_FOUND;
// INVALID_ARGUMENT; FAILED_PRECONDITION if the nodes are too few for a run; ALREADY_EXISTS if the
// job has joined and its workers have called.
struct JoinAllocation {
  SubmissionId submission;
  std::string job;                         // 4711
  std::vector<std::string> hosts;          // its nodes, in their order
  std::vector<std::string> token_sha256s;  // of the secrets, one for each node
  int64_t token_expires_at_us = 0;
  int64_t deadline_us = 0;  // when the job ends; 0: not known
};

// A kind of nodes that a launcher gives, under a name by which submissions ask for it.
struct LaunchProfile {
  std::string name;
  int32_t node_count_max = 0;        // of an allocation
  int64_t lifetime_us_max = 0;       // of an allocation; 0: no limit
  int32_t allocation_count_max = 0;  // at a time; 0: as many as the launcher gives
  bool is_preemptible = false;       // its nodes may be taken away while a run goes
};

// The launcher is there, as configured. Comes once after each start; before that nobody is asked
// for nodes. Allocations of other launchers end: nobody can give them back. Reply: Done.
struct LauncherStarted {
  std::string launcher;  // attach | local | slurm
  // What can be asked of it; 0 allocations: nothing.
  int32_t allocation_count_max = 0;  // at a time
  int32_t node_count_min = 0;        // of each
  int32_t node_count_max = 0;
  bool is_wanted_at_once = false;  // the first allocation, before a run needs it
  // Each allocation is for one submission, with as many nodes as one of its runs takes, and for as
  // long as its runs may need.
  bool is_per_submission = false;
  int64_t lifetime_us_max = 0;  // is_per_submission: the most that it gives; 0: no limit
  std::vector<LaunchProfile> profiles = {};  // beside what it gives to who names none
};

// How it goes with an allocation that the launcher waits for. In memory only: it is told again
// after a start.
struct LeaseWait {
  std::string words;              // for what: Slurm job 4711 (assay-a12): "Resources"
  int64_t expected_start_us = 0;  // 0: the batch system does not say
  std::string silence;            // since silent_since_us: "Slurm has not answered"; empty: it has
  int64_t silent_since_us = 0;
  bool operator==(const LeaseWait&) const = default;
};
using LeaseWaits = std::map<AllocationId, LeaseWait>;

// What the launcher says about an allocation. Reply: Done. Repeating it changes nothing. A grant
// that comes when the nodes are not wanted any more, or the word that they may come, has them given
// back.
struct LaunchReported {
  enum class Outcome {
    kGranted,  // it holds `workers`, each with an agent, until deadline_us; `reason`: why others
               // went
    kFailed,   // it could not do what was asked: `reason` says why
    kEnded,    // it holds no nodes of the allocation any more
    kPending,  // it is asked for as `job`, and `waiting` says how that goes
  };
  AllocationId allocation;
  Outcome outcome = Outcome::kFailed;
  std::vector<std::string> workers;
  int64_t deadline_us = 0;  // 0: none
  std::string reason;
  std::vector<std::string> hosts;  // kGranted: of the workers, in their order; may be empty
  std::string job;                 // kPending; empty: not known yet
  LeaseWait waiting;               // kPending
};

// Time has passed. Reply: Done.
struct Tick {};

using CommandBody =
    std::variant<CreateSubmission, CancelSubmission, ImportSubmission, NoteSubmission,
                 PublishSubmission, WithdrawSubmission, PruneInstances, ExplainSubmission,
                 PlanPlacement, Synchronize, AppendRunEvents, RecordArtifact, AuthorizeUpload,
                 DrainWorker, ResumeWorker, LabelWorker, RevokeWorker, ListWorkers, CreateToken,
                 RevokeToken, RedeemEnrolment, AddDataset, RemoveDataset, SaveView, RemoveView,
                 OrderCaches, GetServerInfo, LogChecked, SetScored, RequestAllocation,
                 ReleaseAllocation, LauncherStarted, LaunchReported, JoinAllocation, EnrolNode,
                 RecordBackup, PruneArtifacts, RecordRefusal, Tick>;

struct Command {
  std::string principal;  // who asks, as authenticated; kCoordinator for internal facts
  CommandBody body;
  // Of the certificate by which the principal, a worker, was known; none: by something else.
  // UNAUTHENTICATED if it was revoked, were it only a moment before the command's turn came.
  std::optional<int64_t> certificate_generation = std::nullopt;
  Standing standing = {};  // as what the principal asks
};

// ---------------------------------------------------------------------------------------- replies

// The submission as it is after the batch; not there where a repeated request names one that has
// ended and left memory: then read it from the store by `id`.
struct SubmissionReply {
  SubmissionId id;
  std::optional<Submission> submission;
  bool is_repeated = false;  // an earlier request had made it
};

enum class WaitReason {
  kResources,          // workers that match are busy
  kPriority,           // earlier runs hold or wait for the same workers
  kOrganizationLimit,  // its organisation has as many runs as it may
  kLabels,             // too few workers match its labels, backend or number
  kWorkersLost,        // enough would match, were they not silent or lost
  kWorkersDrained,     // enough would match, were they not drained
  kAllocationQueued,   // nodes are asked for and have not come
  kAllocationRefused,  // the launcher could not provide them, and is asked again
  kPreflight,          // its nodes are being checked
  kNotWaiting,         // about to be placed, or being judged
  kRunning,
  kEnded,
};
absl::string_view ToString(WaitReason reason);  // "RESOURCES"

struct Explanation {
  WaitReason reason = WaitReason::kNotWaiting;
  int64_t since_us = 0;
  std::string explanation;     // one sentence with the numbers
  std::string remedy;          // what would unblock it; may be empty
  int32_t queue_position = 0;  // of its first queued run among those seen, from 1; 0: none is
};

struct PlacementReply {
  int32_t worker_count_matching = 0;    // alive or suspect, whatever they do
  int32_t worker_count_free = 0;        // of these, free and alive
  int32_t run_count_ahead = 0;          // runs queued, assigned or running that the viewer sees
  std::vector<Finding> findings;        // why it could not run at all; an ERROR refuses it
  std::optional<AllocationSpec> lease;  // to ask of the launcher; none: not needed, or nobody there
};

// What a run needs on one node; the API turns it into a RunSpec.
struct RunOrder {
  SubmissionId submission;
  SubmissionSpec spec;
  RuleFacts rules;
  Dataset dataset;
  int32_t run_number = 0;
  int64_t seed = 0;
  int32_t node_rank = 0;
  std::string rendezvous_address;  // of the first worker
  std::string rendezvous_token;    // secret of this run and generation
  // Of external programs only: by which peers reach the nodes, in rank order, and the first's port.
  std::vector<std::string> hosts;
  std::vector<std::string> node_names;  // the nodes' labels kNodeLabel; empty unless all have one
  int32_t program_port = 0;
  std::optional<Preflight> preflight;  // that the node has passed for the set; none: there was none
  std::optional<ArtifactRef> engines;  // of a replacement's first node: those of the run before it
  bool operator==(const RunOrder&) const = default;
};

enum class DesiredAction { kIdle, kExecute, kStop, kForget, kCheck };

struct Desired {
  DesiredAction action = DesiredAction::kIdle;
  RunId run;
  int64_t generation = 0;         // kCheck: the number of the pre-flight
  std::optional<RunOrder> order;  // kExecute
  bool may_start = false;         // kExecute, of a throughput set: all of its instances are ready
  std::optional<PreflightOrder> checks = std::nullopt;  // kCheck
  std::optional<CacheOrder> cache = std::nullopt;       // beside the action; none: nothing is to do
  bool operator==(const Desired&) const = default;
};

struct SynchronizeReply {
  Desired desired;
  bool is_satisfied = false;  // the worker does already what it should: the call may be parked
};

struct AppendReply {
  int64_t durable_seq = 0;  // all events of the node up to here are on stable storage
};

struct WorkersReply {
  struct Entry {
    Worker worker;
    Presence presence;
  };
  std::vector<Entry> workers;  // by name
};

struct CachesReply {
  std::vector<std::string> workers;  // that have the order
};

struct ServerInfo {
  int64_t last_seq = 0;
  int64_t submission_count = 0;  // ever accepted or imported
  int64_t worker_count = 0;      // known and not gone
};

struct Done {};
using Reply = std::variant<Done, SubmissionReply, Explanation, PlacementReply, SynchronizeReply,
                           AppendReply, ArtifactRef, Worker, WorkersReply, Token, Dataset,
                           CachesReply, Allocation, ServerInfo, View>;

}  // namespace assay::core

#endif  // SERVER_CORE_COMMAND_H_
