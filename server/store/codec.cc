#include "server/store/codec.h"

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/store/json_archive.h"

// The lists of members, one per struct. They live beside the structs, so that the archives find
// them by argument-dependent lookup. `T` is const when writing.
namespace assay::core {

template <typename T, typename U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

template <class A, Is<Hyperparameter> T>
void Fields(A& a, T& v) {
  a("key", v.key);
  a("json_value", v.json_value);
}

template <class A, Is<Finding> T>
void Fields(A& a, T& v) {
  a("rule", v.rule);
  a("severity", v.severity);
  a("error_class", v.error_class);
  a("key", v.key);
  a("line", v.line);
  a("expected", v.expected);
  a("found", v.found);
  a("remedy", v.remedy);
}

template <class A, Is<SubmissionSpec> T>
void Fields(A& a, T& v) {
  a("organization", v.organization);
  a("system", v.system);
  a("benchmark", v.benchmark);
  a("division", v.division);
  a("round", v.round);
  a("dataset", v.dataset);
  a("node_count", v.node_count);
  a("ranks_per_node", v.ranks_per_node);
  a("run_count", v.run_count);
  a("hyperparameters", v.hyperparameters);
  a("backend", v.backend);
  a("epoch_count_max", v.epoch_count_max);
  a("status", v.status);
  a("worker_labels", v.worker_labels);
  a("replacement_count_max", v.replacement_count_max);
  a("run_timeout_ms", v.run_timeout_ms);
  a("staging", v.staging);
}

template <class A, Is<RuleFacts> T>
void Fields(A& a, T& v) {
  a("digest", v.digest);
  a("is_mlperf_result", v.is_mlperf_result);
  a("label", v.label);
  a("required_run_count", v.required_run_count);
  a("quality_target", v.quality_target);
  a("quality_key", v.quality_key);
  a("is_staging_timed", v.is_staging_timed);
  a("kernel_size", v.kernel_size);
  a("base_filter_count", v.base_filter_count);
  a("rule_set_toml", v.rule_set_toml);
}

template <class A, Is<Throughput> T>
void Fields(A& a, T& v) {
  a("model_count", v.model_count);
  a("pruned_count", v.pruned_count);
  a("instance_scale", v.instance_scale);
  a("time_to_all_minutes", v.time_to_all_minutes);
}

template <class A, Is<Submission> T>
void Fields(A& a, T& v) {
  a("id", v.id);
  a("spec", v.spec);
  a("rules", v.rules);
  a("state", v.state);
  a("state_reason", v.state_reason);
  a("submitter", v.submitter);
  a("created_at_us", v.created_at_us);
  a("ended_at_us", v.ended_at_us);
  a("score_minutes", v.score_minutes);
  a("is_imported", v.is_imported);
  a("runs", v.runs);
  a("seeds", v.seeds);
  a("replacement_count", v.replacement_count);
  a("scaling", v.scaling);
  a("findings", v.findings);
  a("source_path", v.source_path);
  a.Added("throughput", v.throughput);
}

template <class A, Is<ArtifactRef> T>
void Fields(A& a, T& v) {
  a("file_name", v.file_name);
  a("sha256", v.sha256);
  a("size_bytes", v.size_bytes);
}

template <class A, Is<RunFacts> T>
void Fields(A& a, T& v) {
  a("is_compliant", v.is_compliant);
  a("is_converged", v.is_converged);
  a("run_start_ms", v.run_start_ms);
  a("run_stop_ms", v.run_stop_ms);
  a("quality", v.quality);
  a("epoch_count", v.epoch_count);
  a("staging_ms", v.staging_ms);
  a("global_batch_size", v.global_batch_size);
  a.Added("instance_scale", v.instance_scale);
  a("findings", v.findings);
}

template <class A, Is<Run> T>
void Fields(A& a, T& v) {
  a("id", v.id);
  a("submission", v.submission);
  a("number", v.number);
  a("seed", v.seed);
  a("state", v.state);
  a("state_reason", v.state_reason);
  a("is_replaceable", v.is_replaceable);
  a("generation", v.generation);
  a("created_at_us", v.created_at_us);
  a("assigned_at_us", v.assigned_at_us);
  a("started_at_us", v.started_at_us);
  a("ended_at_us", v.ended_at_us);
  a("exit_code", v.exit_code);
  a("first_touch_us", v.first_touch_us);
  a("first_touch_uncertainty_us", v.first_touch_uncertainty_us);
  a("facts", v.facts);
  a("artifacts", v.artifacts);
}

template <class A, Is<Capabilities> T>
void Fields(A& a, T& v) {
  a("host_name", v.host_name);
  a("core_count", v.core_count);
  a("memory_bytes", v.memory_bytes);
  a("accelerator_count", v.accelerator_count);
  a("accelerator_model", v.accelerator_model);
  a("backends", v.backends);
  a("rendezvous_address", v.rendezvous_address);
}

template <class A, Is<WorkerDescription> T>
void Fields(A& a, T& v) {
  a("incarnation", v.incarnation);
  a("capabilities", v.capabilities);
  a("labels", v.labels);
  a("system_description_json", v.system_description_json);
  a("version", v.version);
}

template <class A, Is<Worker> T>
void Fields(A& a, T& v) {
  a("name", v.name);
  a("state", v.state);
  a("state_reason", v.state_reason);
  a("state_since_us", v.state_since_us);
  a("is_drain_requested", v.is_drain_requested);
  a("description", v.description);
  a("run", v.run);
  a("generation", v.generation);
}

template <class A, Is<Dataset> T>
void Fields(A& a, T& v) {
  a("id", v.id);
  a("benchmark", v.benchmark);
  a("path", v.path);
  a("digest", v.digest);
  a("train_sample_count", v.train_sample_count);
  a("eval_sample_count", v.eval_sample_count);
  a("cube_edge", v.cube_edge);
  a("compression", v.compression);
}

template <class A, Is<Token> T>
void Fields(A& a, T& v) {
  a("id", v.id);
  a("kind", v.kind);
  a("role", v.role);
  a("principal", v.principal);
  a("organization", v.organization);
  a("secret_sha256", v.secret_sha256);
  a("created_at_us", v.created_at_us);
  a("expires_at_us", v.expires_at_us);
  a("is_revoked", v.is_revoked);
}

template <class A, Is<SubmissionCreated> T>
void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("request_id", v.request_id);
  a("spec", v.spec);
  a("rules", v.rules);
  a("findings", v.findings);
  a("seeds", v.seeds);
  a("first_run", v.first_run);
}

template <class A, Is<SubmissionImported> T>
void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("runs", v.runs);
}

template <class A, Is<SubmissionCheckStarted> T>
void Fields(A& a, T& v) {
  a("submission", v.submission);
}

template <class A, Is<SubmissionClosed> T>
void Fields(A& a, T& v) {
  a("submission", v.submission);
  a("state", v.state);
  a("reason", v.reason);
  a("score_minutes", v.score_minutes);
  a("findings", v.findings);
}

template <class A, Is<RunQueued> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("submission", v.submission);
  a("replaces", v.replaces);
}

template <class A, Is<RunAssigned> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("generation", v.generation);
  a("workers", v.workers);
}

template <class A, Is<NodeStarted> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("node_rank", v.node_rank);
  a("clock_offset_us", v.clock_offset_us);
  a("clock_offset_uncertainty_us", v.clock_offset_uncertainty_us);
}

template <class A, Is<RunStarted> T>
void Fields(A& a, T& v) {
  a("run", v.run);
}

template <class A, Is<NodeFinished> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("node_rank", v.node_rank);
  a("exit_code", v.exit_code);
  a("reason", v.reason);
}

template <class A, Is<NodeGivenUp> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("node_rank", v.node_rank);
}

template <class A, Is<RunUploaded> T>
void Fields(A& a, T& v) {
  a("run", v.run);
}

template <class A, Is<RunJudged> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("facts", v.facts);
}

template <class A, Is<RunFailed> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("reason", v.reason);
  a("exit_code", v.exit_code);
  a("is_replaceable", v.is_replaceable);
}

template <class A, Is<RunFailureExplained> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("reason", v.reason);
  a("exit_code", v.exit_code);
}

template <class A, Is<RunCancelled> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("reason", v.reason);
}

template <class A, Is<RunEventsAppended> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("node_rank", v.node_rank);
  a("first_seq", v.first_seq);
  a("last_seq", v.last_seq);
  a("first_touch_us", v.first_touch_us);
}

template <class A, Is<ArtifactRecorded> T>
void Fields(A& a, T& v) {
  a("run", v.run);
  a("artifact", v.artifact);
}

template <class A, Is<WorkerRegistered> T>
void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("description", v.description);
}

template <class A, Is<WorkerDescribed> T>
void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("description", v.description);
}

template <class A, Is<WorkerStateChanged> T>
void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("state", v.state);
  a("reason", v.reason);
  a("is_drain_requested", v.is_drain_requested);
}

template <class A, Is<WorkerReleased> T>
void Fields(A& a, T& v) {
  a("worker", v.worker);
  a("run", v.run);
}

template <class A, Is<TokenCreated> T>
void Fields(A& a, T& v) {
  a("request_id", v.request_id);
  a("token", v.token);
}

template <class A, Is<TokenRevoked> T>
void Fields(A& a, T& v) {
  a("token", v.token);
  a("worker", v.worker);
}

template <class A, Is<DatasetAdded> T>
void Fields(A& a, T& v) {
  a("dataset", v.dataset);
}

template <class A, Is<DatasetRemoved> T>
void Fields(A& a, T& v) {
  a("dataset", v.dataset);
}

template <class A, Is<AgentsLaunched> T>
void Fields(A& a, T& v) {
  a("worker_count", v.worker_count);
  a("error", v.error);
}
}  // namespace assay::core

namespace assay::store {
namespace {

template <typename T>
std::string EncodeRecord(const T& value) {
  JsonWriter writer;
  writer.Write(value);
  return writer.Take();
}

template <typename T>
absl::StatusOr<T> DecodeRecord(absl::string_view body) {
  rapidjson::Document document;
  // Iterative: a deeply nested body must not use up the stack.
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(body.data(),
                                                                                      body.size());
  if (document.HasParseError())
    return absl::DataLossError(
        absl::StrCat("not JSON at byte ", document.GetErrorOffset(), ": ", body.substr(0, 80)));
  T value;
  JsonReader reader(&document);
  Fields(reader, value);
  RETURN_IF_ERROR(reader.status());
  return value;
}

// Tries the alternatives of Event one after the other.
template <size_t kIndex = 0>
absl::StatusOr<core::Event> DecodeAs(absl::string_view type, int version, absl::string_view body) {
  if constexpr (kIndex == std::variant_size_v<core::Event>) {
    return absl::DataLossError(absl::StrCat("unknown type of event ", type));
  } else {
    using E = std::variant_alternative_t<kIndex, core::Event>;
    if (E::kType != type) return DecodeAs<kIndex + 1>(type, version, body);
    if (version > E::kVersion)
      return absl::FailedPreconditionError(absl::StrCat("event ", type, " has version ", version,
                                                        ", this program knows ", E::kVersion,
                                                        "; use a newer one"));
    absl::StatusOr<E> event = DecodeRecord<E>(body);
    if (!event.ok()) return Annotate(event.status(), type);
    return core::Event(*std::move(event));
  }
}

}  // namespace

std::string EncodeEvent(const core::Event& event) {
  return std::visit([](const auto& e) { return EncodeRecord(e); }, event);
}

absl::StatusOr<core::Event> DecodeEvent(absl::string_view type, int version,
                                        absl::string_view body) {
  return DecodeAs(type, version, body);
}

std::string Encode(const core::Submission& submission) {
  return EncodeRecord(submission);
}
std::string Encode(const core::Run& run) {
  return EncodeRecord(run);
}
std::string Encode(const core::Worker& worker) {
  return EncodeRecord(worker);
}
std::string Encode(const core::Dataset& dataset) {
  return EncodeRecord(dataset);
}
std::string Encode(const core::Token& token) {
  return EncodeRecord(token);
}
std::string Encode(const core::Finding& finding) {
  return EncodeRecord(finding);
}
absl::StatusOr<core::Submission> DecodeSubmission(absl::string_view body) {
  return DecodeRecord<core::Submission>(body);
}
absl::StatusOr<core::Run> DecodeRun(absl::string_view body) {
  return DecodeRecord<core::Run>(body);
}
absl::StatusOr<core::Worker> DecodeWorker(absl::string_view body) {
  return DecodeRecord<core::Worker>(body);
}
absl::StatusOr<core::Dataset> DecodeDataset(absl::string_view body) {
  return DecodeRecord<core::Dataset>(body);
}
absl::StatusOr<core::Token> DecodeToken(absl::string_view body) {
  return DecodeRecord<core::Token>(body);
}
absl::StatusOr<core::Finding> DecodeFinding(absl::string_view body) {
  return DecodeRecord<core::Finding>(body);
}

}  // namespace assay::store
