// What each record is made of: one list of its members, by which the store keeps it (store/codec.h)
// and the API shows it (api/proto_archive.h). A new member is one line here, and one in the message
// if people may see it.
//
// `Fields(archive, value)` calls the archive for each member in order; `T` is const when it writes.
//   a("name", v.name)            in databases and in the API under this name
//   a("name", v.name, SHOWN)     in the API otherwise, or not at all
//   a.Added("name", v.name, ..)  as these, but databases of earlier versions do not have it
//   a.Elsewhere(v.name)          in neither by this list
//   a.Former(v)                  members that only earlier versions have (store/former_members.h)
// Whether a list is complete is checked where it is compiled (IsDescribed), and whether the API has
// all that it names, by tests/server/api/description_test.cc.

#ifndef SERVER_CORE_DESCRIPTION_H_
#define SERVER_CORE_DESCRIPTION_H_

#include "absl/strings/string_view.h"

#include "common/rules/pack_names.h"
#include "server/core/cache_description.h"
#include "server/core/described.h"
#include "server/core/types.h"
#include "server/core/upkeep_description.h"

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

inline absl::string_view ToString(Counts counts) {
  return NameOf(counts);
}

template <class A, core::Is<Scoring> T>
constexpr void Fields(A& a, T& v) {
  a("counts", v.counts);
  a("failed_runs_allowed", v.failed_runs_allowed);
}

template <class A, core::Is<Finding> T>
constexpr void Fields(A& a, T& v) {
  a("rule", v.rule_id);
  a("severity", v.severity);
  a("error_class", v.error_class);
  a("key", v.key);
  a("line", v.line);
  a("expected", v.expected);
  a("found", v.found);
  a("remedy", v.remedy);
  a.Added("section", v.section, core::kNotShown);  // `assay rules explain` tells it
}

}  // namespace assay::rules

namespace assay::core {

template <class A, Is<Standing> T>
constexpr void Fields(A& a, T& v) {
  a("role", v.role);
  a("organization", v.organization);
}

template <class A, Is<RequestKey> T>
constexpr void Fields(A& a, T& v) {
  a("standing", v.standing);
  a("principal", v.principal);
  a("request_id", v.request_id);
}

template <class A, Is<Hyperparameter> T>
constexpr void Fields(A& a, T& v) {
  a("key", v.key);
  a("json_value", v.json_value);
}

template <class A, Is<Borrowing> T>
constexpr void Fields(A& a, T& v) {
  a("own", v.own, ShownAs("own_entry"));
  a("lender", v.lender, ShownAs("lender_entry"));
}

template <class A, Is<BorrowedHyperparameter> T>
constexpr void Fields(A& a, T& v) {
  a("key", v.key);
  a("own_json", v.own_json);
  a("json_value", v.json_value);
  a("standing", v.standing);
}

template <class A, Is<BorrowingRecord> T>
constexpr void Fields(A& a, T& v) {
  a("own_created_at_us", v.own_created_at_us, ShownAs("own_create_time"));
  a("lender_created_at_us", v.lender_created_at_us, ShownAs("lender_create_time"));
  a("changes", v.changes);
}

template <class A, Is<Convergence> T>
constexpr void Fields(A& a, T& v) {
  a("is_passed", v.is_passed);
  a("verdict", v.verdict);
  a("message", v.message);
  a("normalization", v.normalization);
  a("mean_epochs", v.mean_epochs);
  a("min_epochs", v.min_epochs);
  a("p_value", v.p_value);
  a("normalized_minutes", v.normalized_minutes, ShownAs("normalized_score_minutes"));
  a("error", v.error);
}

// The name of a workload's kind, as the API has it.
constexpr const char* KindName(const TrainerWorkload*) {
  return "trainer";
}

template <class A, Is<TrainerWorkload> T>
constexpr void Fields(A& a, T& v) {
  a("backend", v.backend);
}

constexpr const char* KindName(const CommandWorkload*) {
  return "command";
}

template <class A, Is<SourceArchive> T>
constexpr void Fields(A& a, T& v) {
  a("sha256", v.sha256);
  a("size_bytes", v.size_bytes);
  a("git_commit", v.git_commit);
  a("is_modified", v.is_modified);
}

template <class A, Is<ImageFile> T>
constexpr void Fields(A& a, T& v) {
  a("path", v.path);
  a("sha256", v.sha256);
}

template <class A, Is<CommandWorkload> T>
constexpr void Fields(A& a, T& v) {
  a("command", v.command);
  a("launcher", v.launcher);
  a("source", v.source);
  a("log", v.log);
  a("env", v.env);
  a("collect", v.collect);
  a("stop_grace_s", v.stop_grace_s);
  a("memory_mib", v.memory_mib);
  a("image", v.image);
}

template <class A, Is<SubmissionSpec> T>
constexpr void Fields(A& a, T& v) {
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
  a("run_timeout_ms", v.run_timeout_ms, ShownAs("run_timeout"));
  a("staging", v.staging);
  a.Added("borrowing", v.borrowing);
  a.Added("metric", v.metric);
  a.Added("fleet", v.fleet);
  a.Added("allow_preemptible", v.allow_preemptible);
  a.Added("minutes_per_run", v.minutes_per_run);
  a.Former(v);
}

template <class A, Is<RuleFacts> T>
constexpr void Fields(A& a, T& v) {
  a("digest", v.digest, ShownAs("rules_digest"));
  a("is_mlperf_result", v.is_mlperf_result);
  a("label", v.label, kNotShown);
  a("required_run_count", v.required_run_count);
  a("quality_target", v.quality_target, kNotShown);
  a("quality_key", v.quality_key, kNotShown);
  a("is_staging_timed", v.is_staging_timed, kNotShown);
  a.Added("init_limit_ms", v.init_limit_ms, kNotShown);
  a.Added("fixed", v.fixed, kNotShown);
  a.Added("scoring", v.scoring);
  a("rule_set_toml", v.rule_set_toml, kNotShown);
  a.Former(v);
}

template <class A, Is<Throughput> T>
constexpr void Fields(A& a, T& v) {
  a("model_count", v.model_count);
  a("pruned_count", v.pruned_count);
  a("instance_scale", v.instance_scale);
  a("time_to_all_minutes", v.time_to_all_minutes);
  a.Added("corrected_minutes", v.corrected_minutes);
  a.Added("uncertainty_ms", v.uncertainty_ms);
  a.Added("start_spread_ms", v.start_spread_ms);
}

template <class A, Is<Note> T>
constexpr void Fields(A& a, T& v) {
  a("author", v.author);
  a("organization", v.organization);
  a("at_us", v.at_us, ShownAs("create_time"));
  a("text", v.text);
}

template <class A, Is<Submission> T>
constexpr void Fields(A& a, T& v) {
  a("id", v.id, ShownAs("name"));
  a("spec", v.spec);
  a("rules", v.rules, kInPlace);
  a("state", v.state);
  a("state_reason", v.state_reason);
  a("submitter", v.submitter);
  a("created_at_us", v.created_at_us, ShownAs("create_time"));
  a("ended_at_us", v.ended_at_us, ShownAs("end_time"));
  a("score_minutes", v.score_minutes);
  a("is_imported", v.is_imported);
  a("runs", v.runs);
  a("seeds", v.seeds, kNotShown);
  a("replacement_count", v.replacement_count, kNotShown);
  a("scaling", v.scaling);
  a("findings", v.findings);
  a("source_path", v.source_path);
  a.Added("throughput", v.throughput);
  a.Added("borrowing", v.borrowing);
  a.Added("convergence", v.convergence, ShownAs("reference"));
  a.Added("notes", v.notes);
  a.Added("lease_failure_count", v.lease_failure_count, kNotShown);
  a.Added("lease_error", v.lease_error, kNotShown);
  a.Added("absent_hosts", v.absent_hosts, kNotShown);
  a.Added("pruned_runs", v.pruned_runs);
  a.Added("checked_nodes", v.checked_nodes);
  a.Added("preflight_error", v.preflight_error);
  a.Added("checked_gang", v.checked_gang, kNotShown);
  a.Added("published_at_us", v.published_at_us, ShownAs("publish_time"));
  a.Added("measured_at_us", v.measured_at_us, ShownAs("measure_time"));
  a.Added("system_description_json", v.system_description_json);
  a.Added("withdrawn_at_us", v.withdrawn_at_us, ShownAs("withdraw_time"));
  a.Added("withdraw_reason", v.withdraw_reason);
}

template <class A, Is<ArtifactRef> T>
constexpr void Fields(A& a, T& v) {
  a("file_name", v.file_name);
  a("sha256", v.sha256);
  a("size_bytes", v.size_bytes);
}

template <class A, Is<SwitchPower> T>
constexpr void Fields(A& a, T& v) {
  a("name", v.name);
  a("watts", v.watts);
}

template <class A, Is<RunFacts> T>
constexpr void Fields(A& a, T& v) {
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
  a.Added("arrival_run_ms", v.arrival_run_ms);
  a.Added("time_error_us", v.time_error_us);
  a.Added("coordinator_run_ms", v.coordinator_run_ms);
  a.Added("coordinator_error_us", v.coordinator_error_us);
  a.Added("energy_joules", v.energy_joules);
  a.Added("energy_error_joules", v.energy_error_joules);
  a.Added("energy_scope", v.energy_scope);
  a.Added("touch_assurance", v.touch_assurance);
  a.Added("touch_hole_codes", v.touch_hole_codes);
  a.Added("switches", v.switches);
  a.Added("touch_after_start_us", v.touch_after_start_us);
  a.Added("touch_error_us", v.touch_error_us);
}

template <class A, Is<GangTouch> T>
constexpr void Fields(A& a, T& v) {
  a("at_us", v.at_us);
  a("uncertainty_us", v.uncertainty_us);
}

template <class A, Is<Run> T>
constexpr void Fields(A& a, T& v) {
  a("id", v.id, ShownAs("name"));
  a("submission", v.submission);
  a("number", v.number);
  a("seed", v.seed);
  a("state", v.state);
  a("state_reason", v.state_reason);
  a("is_replaceable", v.is_replaceable, kNotShown);
  a("generation", v.generation);
  a.Elsewhere(v.nodes);  // a table of its own; shown by the names of its workers
  a("created_at_us", v.created_at_us, ShownAs("create_time"));
  a("assigned_at_us", v.assigned_at_us, kNotShown);
  a("started_at_us", v.started_at_us, ShownAs("start_time"));
  a("ended_at_us", v.ended_at_us, ShownAs("end_time"));
  a("exit_code", v.exit_code);
  // Shown without how far they may be off.
  a("first_touch", v.first_touch, kNotShown);
  a("observed_touch", v.observed_touch, kNotShown);
  a("facts", v.facts, kInPlace);
  a("artifacts", v.artifacts);
  a.Added("late_artifacts", v.late_artifacts);
  a.Added("allocation", v.allocation);
  a.Added("node_names", v.node_names);
  a.Added("has_submitters_nodes", v.has_submitters_nodes);
  a.Added("cached_workers", v.cached_workers, ShownAs("cached_workers", "workers/"));
}

template <class A, Is<Capabilities> T>
constexpr void Fields(A& a, T& v) {
  a("host_name", v.host_name);
  a("core_count", v.core_count);
  a("memory_bytes", v.memory_bytes);
  a("accelerator_count", v.accelerator_count);
  a("accelerator_model", v.accelerator_model);
  a("backends", v.backends);
  a("rendezvous_address", v.rendezvous_address);
  a.Added("program_port", v.program_port);
  a.Added("cpu_model", v.cpu_model);
  a.Added("cache_bytes", v.cache_bytes);
}

template <class A, Is<WorkerDescription> T>
constexpr void Fields(A& a, T& v) {
  a("incarnation", v.incarnation, kNotShown);
  a("capabilities", v.capabilities);
  a("labels", v.labels);
  a("system_description_json", v.system_description_json);
  a("version", v.version);
}

template <class A, Is<NodeCheck> T>
constexpr void Fields(A& a, T& v) {
  a("check", v.check);
  a("policy", v.policy);
  a("is_measured", v.is_measured);
  a("value", v.value);
  a("unit", v.unit);
  a("detail", v.detail);
  a("median", v.median);
  a("problem", v.problem);
}

template <class A, Is<GangPlace> T>
constexpr void Fields(A& a, T& v) {
  a("gang", v.gang);
  a("rank", v.rank);
  a("node_count", v.node_count);
  a("root", v.root);
}

template <class A, Is<Preflight> T>
constexpr void Fields(A& a, T& v) {
  a("number", v.number);
  a("submission", v.submission);
  a("state", v.state);
  a("reason", v.reason);
  a("checks", v.checks);
  a("percent_of_median", v.percent_of_median);
  a("time_limit_us", v.time_limit_us, kNotShown);
  a("started_at_us", v.started_at_us, ShownAs("start_time"));
  a("deadline_us", v.deadline_us, ShownAs("deadline_time"));
  a("ended_at_us", v.ended_at_us, ShownAs("end_time"));
  a.Added("place", v.place, kNotShown);
  a.Added("node_checks", v.node_checks, kNotShown);
}

template <class A, Is<Rates> T>
constexpr void Fields(A& a, T& v) {
  a("values", v.values);
}

template <class A, Is<Worker> T>
constexpr void Fields(A& a, T& v) {
  a("name", v.name, ShownAs("name", "workers/"));
  a("state", v.state);
  a("state_reason", v.state_reason);
  a("state_since_us", v.state_since_us, kNotShown);
  a("is_drain_requested", v.is_drain_requested, kNotShown);
  a("description", v.description, kInPlace);
  a("run", v.run);
  a("generation", v.generation);
  a("certificate_generation", v.certificate_generation);
  a("certificates_revoked_at_us", v.certificates_revoked_at_us,
    ShownAs("certificates_revoke_time"));
  a.Added("allocation", v.allocation);
  a.Added("is_forgotten", v.is_forgotten, kNotShown);
  a.Added("preflight", v.preflight);
  a.Added("cache_orders", v.cache_orders);
  a.Added("operator_labels", v.operator_labels);
}

template <class A, Is<Dataset> T>
constexpr void Fields(A& a, T& v) {
  a("id", v.id, ShownAs("name", "datasets/"));
  a("benchmark", v.benchmark);
  a("path", v.path);
  a("digest", v.digest);
  a("train_sample_count", v.train_sample_count);
  a("eval_sample_count", v.eval_sample_count);
  a("compression", v.compression);
  a.Added("parameters", v.parameters);
  a.Former(v);
}

template <class A, Is<View> T>
constexpr void Fields(A& a, T& v) {
  a("name", v.name);
  a("author", v.author);
  a("standing", v.standing, kNotShown);
  a("is_shared", v.is_shared);
  a("kind", v.kind);
  a("filter", v.filter);
  a("order_by", v.order_by);
  a("columns", v.columns);
  a("group_by", v.group_by);
  a("aggregates", v.aggregates);
  a("saved_at_us", v.saved_at_us, ShownAs("save_time"));
}

template <class A, Is<Token> T>
constexpr void Fields(A& a, T& v) {
  a("id", v.id, ShownAs("name"));
  a("kind", v.kind);
  a("role", v.role);
  a("principal", v.principal);
  a("organization", v.organization);
  a("secret_sha256", v.secret_sha256, kNotShown);
  a("created_at_us", v.created_at_us, ShownAs("create_time"));
  a("expires_at_us", v.expires_at_us, ShownAs("expire_time"));
  a("is_revoked", v.is_revoked);
  a.Added("revoked_at_us", v.revoked_at_us, kNotShown);
  a.Added("is_forgotten", v.is_forgotten, kNotShown);
  a.Added("made_by", v.made_by, kNotShown);
}

template <class A, Is<AllocationSpec> T>
constexpr void Fields(A& a, T& v) {
  a("launcher", v.launcher);
  a("node_count", v.node_count);
  a("labels", v.labels);
  a("submission", v.submission);
  a("lifetime_us", v.lifetime_us, ShownAs("lifetime"));
  a.Added("wanted_hosts", v.wanted_hosts, kNotShown);
  a.Added("profile", v.profile);
  a.Added("organization", v.organization, kNotShown);
  a.Added("excluded_hosts", v.excluded_hosts, kNotShown);
}

template <class A, Is<Allocation> T>
constexpr void Fields(A& a, T& v) {
  a("id", v.id, ShownAs("name"));
  a("spec", v.spec, kInPlace);
  a("state", v.state);
  a("state_reason", v.state_reason);
  a("requested_by", v.requested_by);
  a("created_at_us", v.created_at_us, ShownAs("create_time"));
  a("granted_at_us", v.granted_at_us, ShownAs("grant_time"));
  a("ended_at_us", v.ended_at_us, ShownAs("end_time"));
  a("deadline_us", v.deadline_us, ShownAs("deadline_time"));
  a("workers", v.workers, ShownAs("workers", "workers/"));
  a("failure_count", v.failure_count);
  a("last_error", v.last_error);
  a("retry_at_us", v.retry_at_us, ShownAs("retry_time"));
  a.Added("job", v.job);
  a.Added("hosts", v.hosts);
  a.Added("activated_at_us", v.activated_at_us, kNotShown);
  a.Added("first_deadline_us", v.first_deadline_us, kNotShown);
  a.Added("enrolled_hosts", v.enrolled_hosts, kNotShown);
}

}  // namespace assay::core

#endif  // SERVER_CORE_DESCRIPTION_H_
