// The table that limits.h promises: a row per field, in the order of the proto files.

#include <limits>

#include "common/filter.h"
#include "server/api/limits.h"
#include "server/core/decide.h"
#include "server/core/history.h"
#include "server/core/node_figures.h"
#include "server/core/query.h"

namespace assay::api {
namespace {

constexpr int64_t kIdBytes = 128;            // submissions/e-42, workers/ and 63 letters, a UUID
constexpr int64_t kNameBytes = 256;          // of systems, organisations, people, labels
constexpr int64_t kFileNameBytes = 255;      // NAME_MAX
constexpr int64_t kPathBytes = 4096;         // PATH_MAX
constexpr int64_t kSentenceBytes = 4096;     // a reason, for people
constexpr int64_t kEvidenceBytes = 1 << 20;  // a line of a log, and what is quoted of it
constexpr int64_t kDescriptionBytes = 256 << 10;  // the JSON of a large system has 10 KiB
constexpr int64_t kLabels = 64;
constexpr int64_t kFindings = 1000;  // of one log
constexpr int64_t kArtifactCount = core::ArtifactCountMax(core::kNodeCountMax);
constexpr int64_t kSwitches = 1024;
constexpr int64_t kTouchHoles = 64;  // kinds of holes, of which a dozen are known
constexpr int64_t kSecondsOfRun = 366LL * 24 * 3600;
constexpr int64_t kSecondsOfTime = 253'402'300'799;  // the end of the year 9999
constexpr int64_t kMicroseconds = kSecondsOfTime * 1'000'000;
constexpr int64_t kMemoryBytes = int64_t{1} << 60;
constexpr int64_t kBytesPerSecond = 1'000'000'000'000'000;  // of a node
constexpr int64_t kWatts = 1'000'000;                       // of a node
constexpr int64_t kQuality = 1'000'000'000'000'000;
constexpr int64_t kSamples = 1'000'000'000'000;
constexpr int64_t kArtifactBytes = int64_t{4} << 30;  // the store takes no more
constexpr int64_t kImportedLogBytes = 64 << 20;       // published ones have up to 9 MB
constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kInt32Min = std::numeric_limits<int32_t>::min();
constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();
constexpr int64_t kInt64Min = std::numeric_limits<int64_t>::min();

constexpr Limit Name(const char* field, int64_t bytes_max) {
  return {LimitKind::kName, field, 0, bytes_max};
}
constexpr Limit Bytes(const char* field, int64_t bytes_max) {
  return {LimitKind::kBytes, field, 0, bytes_max};
}
constexpr Limit Count(const char* field, int64_t count_max) {
  return {LimitKind::kCount, field, 0, count_max};
}
constexpr Limit Range(const char* field, int64_t min, int64_t max) {
  return {LimitKind::kRange, field, min, max};
}
constexpr Limit Total(const char* message, int64_t bytes_max) {
  return {LimitKind::kTotal, message, 0, bytes_max};
}

constexpr Limit kTable[] = {
    // resources.proto
    Name("Hyperparameter.key", kNameBytes),
    Bytes("Hyperparameter.json_value", 4096),
    Name("HyperparameterBorrowing.own_entry", kIdBytes),
    Name("HyperparameterBorrowing.lender_entry", kIdBytes),
    Name("SubmissionSpec.organization", kNameBytes),
    Name("SubmissionSpec.system", kNameBytes),
    Name("SubmissionSpec.benchmark", kNameBytes),
    Name("SubmissionSpec.division", kNameBytes),
    Name("SubmissionSpec.round", kNameBytes),
    Name("SubmissionSpec.dataset", kNameBytes),
    Range("SubmissionSpec.node_count", 0, kInt32Max),  // the core says what a round takes
    Range("SubmissionSpec.ranks_per_node", 0, core::kRanksPerNodeMax),
    Range("SubmissionSpec.run_count", 0, core::kRunCountMax),
    Count("SubmissionSpec.hyperparameters", 256),  // a dozen are usual
    Name("SubmissionSpec.backend", kNameBytes),
    Range("SubmissionSpec.epoch_count_max", 0, 1'000'000),
    Name("SubmissionSpec.status", kNameBytes),
    Count("SubmissionSpec.worker_labels", kLabels),
    Name("SubmissionSpec.WorkerLabelsEntry.key", kNameBytes),
    Name("SubmissionSpec.WorkerLabelsEntry.value", kNameBytes),
    Range("SubmissionSpec.replacement_count_max", 0, core::kReplacementCountMax),
    Range("SubmissionSpec.run_timeout", 0, kSecondsOfRun),
    Name("SubmissionSpec.staging", kNameBytes),
    Name("SubmissionSpec.metric", kNameBytes),
    Name("SubmissionSpec.fleet", kNameBytes),
    Range("SubmissionSpec.minutes_per_run", 0, core::kMinutesPerRunMax),
    Name("Run.name", kIdBytes),
    Name("Run.submission", kIdBytes),
    Range("Run.number", 0, kInt32Max),
    Range("Run.seed", kInt64Min, kInt64Max),
    Bytes("Run.state_reason", kSentenceBytes),
    Range("Run.generation", 0, kInt64Max),
    Count("Run.workers", core::kNodeCountMax),
    Name("Run.workers", kIdBytes),
    Count("Run.node_names", core::kNodeCountMax),
    Name("Run.node_names", core::kTextBytesMax),
    Name("Run.allocation", kIdBytes),
    Range("Run.create_time", 0, kSecondsOfTime),
    Range("Run.start_time", 0, kSecondsOfTime),
    Range("Run.end_time", 0, kSecondsOfTime),
    Range("Run.exit_code", kInt32Min, kInt32Max),
    Range("Run.run_start_ms", -kMicroseconds, kMicroseconds),
    Range("Run.run_stop_ms", -kMicroseconds, kMicroseconds),
    Range("Run.quality", kInt64Min, kInt64Max),
    Range("Run.epoch_count", 0, kInt32Max),
    Range("Run.first_touch_us", 0, kMicroseconds),
    Range("Run.observed_touch_us", 0, kMicroseconds),
    Range("Run.staging_ms", -kMicroseconds, kMicroseconds),
    Range("Run.arrival_run_ms", -kMicroseconds, kMicroseconds),
    Range("Run.time_error_us", 0, kMicroseconds),
    Range("Run.coordinator_run_ms", -kMicroseconds, kMicroseconds),
    Range("Run.coordinator_error_us", 0, kMicroseconds),
    Range("Run.energy_joules", 0, kInt64Max),
    Range("Run.energy_error_joules", 0, kInt64Max),
    Name("Run.energy_scope", kNameBytes),
    Count("Run.switches", kSwitches),
    Name("SwitchPower.name", kNameBytes),
    Range("SwitchPower.watts", 0, kInt32Max),
    Name("Run.touch_assurance", kNameBytes),
    Range("Run.touch_after_start_us", -kMicroseconds, kMicroseconds),
    Range("Run.touch_error_us", 0, kMicroseconds),
    Count("Run.touch_hole_codes", kTouchHoles),
    Name("Run.touch_hole_codes", kNameBytes),
    Count("Run.cached_workers", core::kNodeCountMax),
    Name("Run.cached_workers", kIdBytes),
    Count("Run.findings", kFindings),
    Count("Run.artifacts", kArtifactCount),
    Count("Run.late_artifacts", kArtifactCount),
    Range("Run.event_count", 0, kInt64Max),
    Range("Run.global_batch_size", kInt64Min, kInt64Max),
    Range("Run.instance_scale", kInt64Min, kInt64Max),
    Bytes("ArtifactRef.file_name", kFileNameBytes),
    Name("ArtifactRef.sha256", kIdBytes),
    Range("ArtifactRef.size_bytes", 0, kArtifactBytes),
    Bytes("Finding.rule", kNameBytes),
    Bytes("Finding.error_class", kEvidenceBytes),
    Bytes("Finding.key", kEvidenceBytes),
    Range("Finding.line", 0, kInt64Max),
    Bytes("Finding.expected", kEvidenceBytes),
    Bytes("Finding.found", kEvidenceBytes),
    Bytes("Finding.remedy", kEvidenceBytes),
    Name("NodeCheck.check", kNameBytes),
    Range("NodeCheck.value", 0, kInt64Max),
    Name("NodeCheck.unit", kNameBytes),
    Bytes("NodeCheck.detail", kSentenceBytes),
    Range("NodeCheck.median", 0, kInt64Max),
    Bytes("NodeCheck.problem", kSentenceBytes),
    Name("Capabilities.host_name", kNameBytes),
    Range("Capabilities.core_count", 0, 1'000'000),
    Range("Capabilities.memory_bytes", 0, kMemoryBytes),
    Range("Capabilities.accelerator_count", 0, 100'000),
    Name("Capabilities.accelerator_model", kNameBytes),
    Count("Capabilities.backends", 16),
    Name("Capabilities.backends", 64),
    Name("Capabilities.rendezvous_address", kNameBytes + 64),  // a host's name and a port
    Range("Capabilities.program_port", 0, 65535),
    Name("Capabilities.cpu_model", kNameBytes),
    Range("Capabilities.cache_bytes", 0, kInt64Max),
    Range("CacheReport.number", 0, kInt64Max),
    Bytes("CacheReport.problem", kSentenceBytes),
    Range("CacheReport.files", 0, kInt64Max),
    Range("CacheReport.files_total", 0, kInt64Max),
    Range("CacheReport.bytes", 0, kInt64Max),
    Range("CacheReport.bytes_total", 0, kInt64Max),
    Count("CacheReport.datasets", static_cast<int64_t>(core::kCachedDatasetCountMax)),
    Bytes("CacheReport.look_problem", kSentenceBytes),
    Name("CachedDataset.digest", kNameBytes),
    Name("CachedDataset.name", kNameBytes),
    Range("CachedDataset.files", 0, kInt64Max),
    Range("CachedDataset.files_total", 0, kInt64Max),
    Range("CachedDataset.bytes", 0, kInt64Max),
    Range("CachedDataset.bytes_total", 0, kInt64Max),
    Range("NodeFigures.age_ms", 0, core::kFiguresAgeMaxMs),
    Range("NodeFigures.run_cpu_share", 0, 1),
    Range("NodeFigures.other_cpu_share", 0, 1),
    Range("NodeFigures.memory_used_bytes", 0, kMemoryBytes),
    Range("NodeFigures.memory_total_bytes", 0, kMemoryBytes),
    Range("NodeFigures.storage_read_bytes_per_s", 0, kBytesPerSecond),
    Range("NodeFigures.storage_written_bytes_per_s", 0, kBytesPerSecond),
    Range("NodeFigures.network_received_bytes_per_s", 0, kBytesPerSecond),
    Range("NodeFigures.network_sent_bytes_per_s", 0, kBytesPerSecond),
    Range("NodeFigures.gpu_share", 0, 1),
    Range("NodeFigures.gpu_watts", 0, kWatts),
    Range("NodeFigures.node_watts", 0, kWatts),
    Range("NodeFigures.epoch", 0, kInt32Max),
    Range("NodeFigures.quality", -kQuality, kQuality),
    Name("Dataset.name", kIdBytes),
    Name("Dataset.benchmark", kNameBytes),
    Name("Dataset.path", kPathBytes),
    Name("Dataset.digest", kNameBytes),
    Range("Dataset.train_sample_count", 0, kSamples),
    Range("Dataset.eval_sample_count", 0, kSamples),
    Name("Dataset.compression", kNameBytes),
    Count("Dataset.parameters", 64),
    Name("Dataset.ParametersEntry.key", kNameBytes),
    Bytes("Dataset.ParametersEntry.value", 4096),
    Range("RunEvent.seq", kInt64Min, kInt64Max - 1000),  // that of the next one exists
    Bytes("RunEvent.text", kEvidenceBytes),
    Range("RunEvent.wall_us", 0, kMicroseconds),
    Range("RunEvent.mono_ns", 0, kInt64Max),
    Range("RunEvent.line", 0, kInt64Max),
    Range("RunEvent.receive_us", 0, kMicroseconds),
    Range("RunEvent.node_rank", 0, core::kNodeCountMax),
    Name("RunEvent.run", kIdBytes),

    // workload.proto
    Name("TrainerWorkload.backend", kNameBytes),
    Count("CommandWorkload.command", 256),
    Bytes("CommandWorkload.command", 32 << 10),
    Name("CommandWorkload.launcher", kNameBytes),
    Name("CommandWorkload.log", kNameBytes),
    Count("CommandWorkload.env", 256),
    Name("CommandWorkload.EnvEntry.key", kNameBytes),
    Bytes("CommandWorkload.EnvEntry.value", 32 << 10),
    Count("CommandWorkload.collect", 256),
    Bytes("CommandWorkload.collect", kPathBytes),
    Range("CommandWorkload.stop_grace_s", 0, 3600),  // the rules say what is taken
    Range("CommandWorkload.memory_mib", 0, kMemoryBytes),
    Bytes("ImageFile.path", kPathBytes),
    Name("ImageFile.sha256", kIdBytes),
    Name("SourceArchive.sha256", kIdBytes),
    Range("SourceArchive.size_bytes", 0, kArtifactBytes),
    Name("SourceArchive.git_commit", kIdBytes),

    // submission_service.proto
    Name("CreateSubmissionRequest.request_id", kIdBytes),
    Bytes("CreateSubmissionWithSourceRequest.source", static_cast<int64_t>(kPieceBytesMax)),
    Name("GetSubmissionRequest.name", kIdBytes),
    Range("ListSubmissionsRequest.page_size", 0, core::kPageSizeMax),
    Name("ListSubmissionsRequest.page_token", kIdBytes),
    Name("ListSubmissionsRequest.organization", kNameBytes),
    Name("ListSubmissionsRequest.system", kNameBytes),
    Name("ListSubmissionsRequest.benchmark", kNameBytes),
    Name("ListSubmissionsRequest.division", kNameBytes),
    Name("ListSubmissionsRequest.round", kNameBytes),
    Name("ListSubmissionsRequest.state", kNameBytes),
    Name("CancelSubmissionRequest.name", kIdBytes),
    Bytes("CancelSubmissionRequest.reason", 1024),
    Name("CancelSubmissionRequest.request_id", kIdBytes),
    Name("WithdrawSubmissionRequest.name", kIdBytes),
    Bytes("WithdrawSubmissionRequest.reason", 1024),
    Name("PruneInstancesRequest.name", kIdBytes),
    Name("PruneInstancesRequest.runs", kIdBytes),
    Count("PruneInstancesRequest.runs", core::kRunCountMax),
    Name("NoteSubmissionRequest.name", kIdBytes),
    Bytes("NoteSubmissionRequest.text", 4096),
    Name("NoteSubmissionRequest.request_id", kIdBytes),
    Name("PublishSubmissionRequest.name", kIdBytes),
    Range("PublishSubmissionRequest.publish_time", 0, kSecondsOfTime),
    Name("JoinAllocationRequest.name", kIdBytes),
    Name("JoinAllocationRequest.job", kIdBytes),
    Count("JoinAllocationRequest.hosts", core::kNodeCountMax),
    Name("JoinAllocationRequest.hosts", kNameBytes),
    Range("JoinAllocationRequest.deadline_time", 0, kSecondsOfTime),
    Name("ExplainSubmissionRequest.name", kIdBytes),
    Name("GetRunRequest.name", kIdBytes),
    Name("ListRunsRequest.submission", kIdBytes),
    Range("ListRunsRequest.page_size", 0, core::kPageSizeMax),
    Name("ListRunsRequest.page_token", kIdBytes),
    Name("ListRunsRequest.state", kNameBytes),
    Name("WatchEventsRequest.submission", kIdBytes),
    Range("WatchEventsRequest.after_seq", 0, kInt64Max),
    Name("WatchRunEventsRequest.run", kIdBytes),
    Range("WatchRunEventsRequest.node_rank", -1, core::kNodeCountMax),
    Range("WatchRunEventsRequest.after_seq", 0, kInt64Max),
    Name("DownloadArtifactRequest.sha256", kIdBytes),
    Bytes("ImportSubmissionRequest.log", static_cast<int64_t>(kPieceBytesMax)),
    Name("ImportHeader.round", kNameBytes),
    Bytes("ImportHeader.source_path", kPathBytes),
    Name("ImportHeader.scaling", kNameBytes),
    Range("ImportHeader.score_minutes", 0, kSecondsOfTime),
    Count("ImportHeader.findings", kFindings),
    Name("ImportHeader.rules_digest", kIdBytes),
    Range("ImportHeader.pruned_count", 0, kInt32Max),
    Range("ImportHeader.publish_time", 0, kSecondsOfTime),
    Bytes("ImportHeader.system_description_json", kDescriptionBytes),
    Bytes("ImportedRun.file_name", kFileNameBytes),
    Name("ImportedRun.sha256", kIdBytes),
    Range("ImportedRun.size_bytes", 0, kImportedLogBytes),

    // worker_service.proto
    Name("SynchronizeRequest.worker", kIdBytes),
    Name("SynchronizeRequest.incarnation", kIdBytes),
    Count("SynchronizeRequest.labels", kLabels),
    Name("SynchronizeRequest.LabelsEntry.key", kNameBytes),
    Name("SynchronizeRequest.LabelsEntry.value", kNameBytes),
    Bytes("SynchronizeRequest.system_description_json", kDescriptionBytes),
    Range("SynchronizeRequest.send_wall_us", 0, kMicroseconds),
    Range("SynchronizeRequest.clock_offset_us", -kMicroseconds, kMicroseconds),
    Range("SynchronizeRequest.clock_offset_uncertainty_us", 0, kMicroseconds),
    Range("SynchronizeRequest.poll_timeout", 0, 3600),  // longer than 20 s is cut
    Name("SynchronizeRequest.version", kNameBytes),
    Name("WorkerStatus.run", kIdBytes),
    Range("WorkerStatus.generation", 0, kInt64Max),
    Range("WorkerStatus.exit_code", kInt32Min, kInt32Max),
    Bytes("WorkerStatus.reason", kSentenceBytes),
    Count("WorkerStatus.artifacts", 1024),
    Range("PreflightReport.number", 0, kInt64Max),
    Count("PreflightReport.checks", static_cast<int64_t>(core::kNodeCheckCountMax)),
    Count("FabricReport.links", core::kFabricNodeCountMax),
    Count("FabricReport.absent_ranks", core::kFabricNodeCountMax),
    Range("FabricReport.absent_ranks", 0, core::kFabricNodeCountMax - 1),
    Range("FabricReport.all_reduce_us", 0, kInt64Max),
    Range("FabricReport.all_reduce_gb_per_s", 0, kInt64Max),
    Bytes("FabricReport.error", kSentenceBytes),
    Range("FabricLink.latency_us", 0, kInt64Max),
    Range("FabricLink.gb_per_s", 0, kInt64Max),
    Total("EventBatch", 1 << 20),
    Name("EventBatch.run", kIdBytes),
    Range("EventBatch.generation", 0, kInt64Max),
    Range("EventBatch.node_rank", 0, core::kNodeCountMax),
    Count("EventBatch.events", static_cast<int64_t>(core::kAppendCountMax)),
    Bytes("UploadArtifactRequest.data", static_cast<int64_t>(kPieceBytesMax)),
    Name("UploadHeader.run", kIdBytes),
    Range("UploadHeader.generation", 0, kInt64Max),
    Bytes("UploadHeader.file_name", kFileNameBytes),
    Name("UploadHeader.sha256", kIdBytes),
    Range("UploadHeader.size_bytes", 0, kArtifactBytes),
    Name("DownloadSourceRequest.run", kIdBytes),
    Range("DownloadSourceRequest.generation", 0, kInt64Max),
    Name("EnrolRequest.token", kNameBytes),
    Name("EnrolRequest.worker", kIdBytes),
    Bytes("EnrolRequest.csr_pem", 16 << 10),

    // admin_service.proto
    Name("Token.name", kIdBytes),
    Name("Token.role", kNameBytes),
    Name("Token.principal", kNameBytes),
    Name("Token.organization", kNameBytes),
    Range("Token.create_time", 0, kSecondsOfTime),
    Range("Token.expire_time", 0, kSecondsOfTime),
    Name("CreateTokenRequest.request_id", kIdBytes),
    Range("CreateTokenRequest.lifetime", 0, kSecondsOfRun),
    Name("RevokeTokenRequest.name", kIdBytes),
    Name("RedeemWebCodeRequest.code", kIdBytes),
    Range("ListWorkersRequest.page_size", 0, core::kPageSizeMax),
    Name("ListWorkersRequest.page_token", kIdBytes),
    Name("GetWorkerRequest.name", kIdBytes),
    Name("DrainWorkerRequest.name", kIdBytes),
    Bytes("DrainWorkerRequest.reason", kSentenceBytes),
    Name("ResumeWorkerRequest.name", kIdBytes),
    Name("LabelWorkerRequest.name", kIdBytes),
    Count("LabelWorkerRequest.labels", kLabels),
    Name("LabelWorkerRequest.LabelsEntry.key", kNameBytes),
    Name("LabelWorkerRequest.LabelsEntry.value", kNameBytes),
    Count("LabelWorkerRequest.removed", kLabels),
    Name("LabelWorkerRequest.removed", kNameBytes),
    Name("RevokeWorkerRequest.name", kIdBytes),
    Bytes("RevokeWorkerRequest.reason", kSentenceBytes),
    Range("ListAllocationsRequest.page_size", 0, core::kPageSizeMax),
    Name("ListAllocationsRequest.page_token", kIdBytes),
    Name("GetAllocationRequest.name", kIdBytes),
    Name("RequestAllocationRequest.request_id", kIdBytes),
    Bytes("RequestAllocationRequest.reason", kSentenceBytes),
    Name("ReleaseAllocationRequest.name", kIdBytes),
    Bytes("ReleaseAllocationRequest.reason", kSentenceBytes),
    Name("Allocation.name", kIdBytes),
    Bytes("Allocation.state_reason", kSentenceBytes),
    Name("Allocation.launcher", kNameBytes),
    Range("Allocation.node_count", 0, core::kNodeCountMax),
    Count("Allocation.labels", kLabels),
    Name("Allocation.LabelsEntry.key", kNameBytes),
    Name("Allocation.LabelsEntry.value", kNameBytes),
    Name("Allocation.submission", kIdBytes),
    Range("Allocation.lifetime", 0, kSecondsOfTime),
    Name("Allocation.requested_by", kNameBytes),
    Count("Allocation.workers", core::kNodeCountMax),
    Name("Allocation.workers", kIdBytes),
    Range("Allocation.create_time", 0, kSecondsOfTime),
    Range("Allocation.grant_time", 0, kSecondsOfTime),
    Range("Allocation.end_time", 0, kSecondsOfTime),
    Range("Allocation.deadline_time", 0, kSecondsOfTime),
    Range("Allocation.retry_time", 0, kSecondsOfTime),
    Range("Allocation.failure_count", 0, kInt32Max),
    Bytes("Allocation.last_error", kSentenceBytes),
    Name("Allocation.job", kIdBytes),
    Count("Allocation.hosts", core::kNodeCountMax),
    Name("Allocation.hosts", kNameBytes),
    Name("Allocation.profile", kNameBytes),
    Name("RemoveDatasetRequest.name", kIdBytes),
    Name("OrderCachesRequest.dataset", kIdBytes),
    Count("OrderCachesRequest.workers", core::kNodeCountMax),
    Name("OrderCachesRequest.workers", kIdBytes),
    Name("OrderCachesRequest.path", kPathBytes),
    Range("ListAuditRequest.after_seq", 0, kInt64Max),
    Range("ListAuditRequest.page_size", 0, core::kPageSizeMax),
    Name("ListAuditRequest.principal", kNameBytes),
    Name("ListAuditRequest.object", kNameBytes),
    Range("ListAuditRequest.since_time", 0, kSecondsOfTime),
    Name("VerifyStoreRequest.backup_directory", kPathBytes),
    Name("BackUpStoreRequest.directory", kPathBytes),

    // history_service.proto
    Bytes("QueryResultsRequest.filter", static_cast<int64_t>(kFilterBytesMax)),
    Name("QueryResultsRequest.order_by", 4 * kNameBytes),
    Count("QueryResultsRequest.columns", 64),
    Name("QueryResultsRequest.columns", kNameBytes),
    Count("QueryResultsRequest.group_by", 8),
    Name("QueryResultsRequest.group_by", kNameBytes),
    Count("QueryResultsRequest.aggregates", 16),
    Name("QueryResultsRequest.aggregates", kNameBytes),
    Range("QueryResultsRequest.page_size", 0, core::kHistoryPageSizeMax),
    Bytes("QueryResultsRequest.page_token", 16 << 10),
    Name("View.name", kIdBytes),
    Name("View.author", kNameBytes),
    Name("View.kind", kIdBytes),
    Bytes("View.filter", static_cast<int64_t>(kFilterBytesMax)),
    Name("View.order_by", 4 * kNameBytes),
    Count("View.columns", 64),
    Name("View.columns", kNameBytes),
    Count("View.group_by", 8),
    Name("View.group_by", kNameBytes),
    Count("View.aggregates", 16),
    Name("View.aggregates", kNameBytes),
    Range("View.save_time", 0, kSecondsOfTime),
    Name("RemoveViewRequest.name", kIdBytes),
};

}  // namespace

std::span<const Limit> LimitTable() {
  return kTable;
}

}  // namespace assay::api
