// The lists of members of what the codec stores, one per struct. They live beside the structs, so
// that the archives find them by argument-dependent lookup. `T` is const when writing. Private to
// the codec.

#ifndef SERVER_STORE_RECORD_FIELDS_H_
#define SERVER_STORE_RECORD_FIELDS_H_

#include <concepts>
#include <type_traits>

#include "absl/strings/string_view.h"

#include "server/core/types.h"
#include "server/store/former_members.h"

namespace assay::core {

template <typename T, typename U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

}  // namespace assay::core

namespace assay::rules {

inline absl::string_view ToString(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "ERROR";
    case Severity::kWarning:
      return "WARNING";
  }
  return "";
}

template <class A, core::Is<Finding> T>
void Fields(A& a, T& v) {
  a("rule", v.rule_id);
  a("severity", v.severity);
  a("error_class", v.error_class);
  a("key", v.key);
  a("line", v.line);
  a("expected", v.expected);
  a("found", v.found);
  a("remedy", v.remedy);
  a.Added("section", v.section);
}

}  // namespace assay::rules

namespace assay::core {

template <class A, Is<Standing> T>
void Fields(A& a, T& v) {
  a("role", v.role);
  a("organization", v.organization);
}

template <class A, Is<RequestKey> T>
void Fields(A& a, T& v) {
  a("standing", v.standing);
  a("principal", v.principal);
  a("request_id", v.request_id);
}

template <class A, Is<Hyperparameter> T>
void Fields(A& a, T& v) {
  a("key", v.key);
  a("json_value", v.json_value);
}

template <class A, Is<Borrowing> T>
void Fields(A& a, T& v) {
  a("own", v.own);
  a("lender", v.lender);
}

template <class A, Is<BorrowedHyperparameter> T>
void Fields(A& a, T& v) {
  a("key", v.key);
  a("own_json", v.own_json);
  a("json_value", v.json_value);
  a("standing", v.standing);
}

template <class A, Is<BorrowingRecord> T>
void Fields(A& a, T& v) {
  a("own_created_at_us", v.own_created_at_us);
  a("lender_created_at_us", v.lender_created_at_us);
  a("changes", v.changes);
}

template <class A, Is<Convergence> T>
void Fields(A& a, T& v) {
  a("is_passed", v.is_passed);
  a("verdict", v.verdict);
  a("message", v.message);
  a("normalization", v.normalization);
  a("mean_epochs", v.mean_epochs);
  a("min_epochs", v.min_epochs);
  a("p_value", v.p_value);
  a("normalized_minutes", v.normalized_minutes);
  a("error", v.error);
}

// The name of a workload's kind, as the API has it.
constexpr const char* KindName(const TrainerWorkload*) {
  return "trainer";
}

template <class A, Is<TrainerWorkload> T>
void Fields(A& a, T& v) {
  a("backend", v.backend);
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
  a.Added("workload", v.workload);
  a("epoch_count_max", v.epoch_count_max);
  a("status", v.status);
  a("worker_labels", v.worker_labels);
  a("replacement_count_max", v.replacement_count_max);
  a("run_timeout_ms", v.run_timeout_ms);
  a("staging", v.staging);
  a.Added("borrowing", v.borrowing);
  a.Former(v);
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
  a.Added("fixed", v.fixed);
  a("rule_set_toml", v.rule_set_toml);
  a.Former(v);
}

template <class A, Is<Throughput> T>
void Fields(A& a, T& v) {
  a("model_count", v.model_count);
  a("pruned_count", v.pruned_count);
  a("instance_scale", v.instance_scale);
  a("time_to_all_minutes", v.time_to_all_minutes);
}

template <class A, Is<Note> T>
void Fields(A& a, T& v) {
  a("author", v.author);
  a("organization", v.organization);
  a("at_us", v.at_us);
  a("text", v.text);
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
  a.Added("borrowing", v.borrowing);
  a.Added("convergence", v.convergence);
  a.Added("notes", v.notes);
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

template <class A, Is<GangTouch> T>
void Fields(A& a, T& v) {
  a("at_us", v.at_us);
  a("uncertainty_us", v.uncertainty_us);
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
  a("first_touch", v.first_touch);
  a("observed_touch", v.observed_touch);
  a("facts", v.facts);
  a("artifacts", v.artifacts);
  a.Added("late_artifacts", v.late_artifacts);
  a.Added("allocation", v.allocation);
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
  a("certificate_generation", v.certificate_generation);
  a("certificates_revoked_at_us", v.certificates_revoked_at_us);
  a.Added("allocation", v.allocation);
  a.Added("is_forgotten", v.is_forgotten);
}

template <class A, Is<Dataset> T>
void Fields(A& a, T& v) {
  a("id", v.id);
  a("benchmark", v.benchmark);
  a("path", v.path);
  a("digest", v.digest);
  a("train_sample_count", v.train_sample_count);
  a("eval_sample_count", v.eval_sample_count);
  a("compression", v.compression);
  a.Added("parameters", v.parameters);
  a.Former(v);
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
  a.Added("revoked_at_us", v.revoked_at_us);
  a.Added("is_forgotten", v.is_forgotten);
}

template <class A, Is<AllocationSpec> T>
void Fields(A& a, T& v) {
  a("launcher", v.launcher);
  a("node_count", v.node_count);
  a("labels", v.labels);
  a("submission", v.submission);
  a("lifetime_us", v.lifetime_us);
}

template <class A, Is<Allocation> T>
void Fields(A& a, T& v) {
  a("id", v.id);
  a("spec", v.spec);
  a("state", v.state);
  a("state_reason", v.state_reason);
  a("requested_by", v.requested_by);
  a("created_at_us", v.created_at_us);
  a("granted_at_us", v.granted_at_us);
  a("ended_at_us", v.ended_at_us);
  a("deadline_us", v.deadline_us);
  a("workers", v.workers);
  a("failure_count", v.failure_count);
  a("last_error", v.last_error);
  a("retry_at_us", v.retry_at_us);
}

}  // namespace assay::core

#endif  // SERVER_STORE_RECORD_FIELDS_H_
