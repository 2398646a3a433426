#include "common/client/resource_json.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/client/ids.h"
#include "common/client/touch_evidence.h"
#include "common/json_document.h"

namespace assay::client {
namespace {

const MessageJson& Resources() {
  static const MessageJson* const resources = new MessageJson(ResourceTables());
  return *resources;
}

template <class State>
std::string TextOf(State state) {
  return EnumText(*google::protobuf::GetEnumDescriptor<State>(), state);
}

Json Absent() {
  return Json(Json::value_t::discarded);
}

template <typename Resource>
Json DescriptionOf(const Resource& resource) {
  Json description = ParseJsonDocument<Json>(resource.system_description_json());
  if (!description.is_object()) return Absent();
  return description;
}

// ---------------------------------------------------------------------------- members of an entry

// "s-42" for submissions/e-42.
Json SetId(const v1::Submission& submission) {
  const std::string id = ShortId(submission.name());
  return absl::StartsWith(id, "e-") ? absl::StrCat("s-", id.substr(2)) : id;
}

Json ReferenceVerdict(const v1::Submission& submission) {
  if (!submission.has_reference()) return Absent();
  const v1::ReferenceConvergence& reference = submission.reference();
  return reference.error().empty() ? reference.verdict()
                                   : absl::StrCat("none: ", reference.error());
}

Json Convergence(const v1::Submission& submission) {
  return submission.has_reference() ? ReferenceJson(submission.reference()) : Absent();
}

Json RunCount(const v1::Submission& submission) {
  return submission.runs_size();
}

Json Hyperparameters(const v1::Submission& submission) {
  Json object = Json::object();
  for (const v1::Hyperparameter& parameter : submission.spec().hyperparameters())
    object[parameter.key()] = JsonOrText(parameter.json_value());
  if (object.empty()) return Absent();
  return object;
}

std::vector<JsonRow> EntryRows() {
  return {{"name", "id", kId | kAlways},
          Derived("", "set", SetId),
          {"state", "", kAlways},
          {"state_reason"},
          {"spec.organization spec.system spec.benchmark spec.division spec.round"},
          {"scaling score_minutes"},
          Derived("", "reference_verdict", ReferenceVerdict),
          {"reference.normalized_score_minutes"},
          Derived("reference", "convergence", Convergence),
          {"throughput.models_per_minute", "", kAlways, "throughput"},
          {"throughput.model_count throughput.pruned_count", "", kAlways, "throughput"},
          {"throughput.instance_scale"},
          {"throughput.time_to_all_minutes", "", kAlways, "throughput"},
          {"throughput.corrected_minutes throughput.uncertainty_ms throughput.start_spread_ms"},
          {"pruned_runs", "", kId},
          {"is_mlperf_result is_imported", "", kAlways},
          {"spec.dataset"},
          {"spec.node_count", "nodes"},
          {"spec.ranks_per_node"},
          Derived("", "run_count", RunCount),
          {"spec.trainer.backend spec.status"},
          {"spec.command", "workload"},
          Derived("spec.hyperparameters", "hyperparameters", Hyperparameters),
          {"spec.borrowing.lender_entry", "borrowed_from", kId},
          {"borrowing.lender_create_time", "borrowed_from_created", 0, "spec.borrowing"},
          {"spec.borrowing.own_entry", "borrowed_for", kId},
          {"borrowing.own_create_time", "borrowed_for_created", 0, "spec.borrowing"},
          {"create_time", "borrowed", 0, "spec.borrowing"},
          {"borrowing.changes", "borrowed_values", kAlways, "spec.borrowing"},
          {"spec.worker_labels", "labels"},
          {"submitter"},
          {"create_time", "created"},
          {"end_time", "ended"},
          {"measure_time", "measured"},
          {"publish_time", "published"},
          {"withdraw_time", "withdrawn"},
          {"withdraw_reason"},
          {"rules_digest source_path"},
          Derived("system_description_json", "system_description", DescriptionOf<v1::Submission>),
          {"runs", "", kId},
          {"findings notes"},
          {"spec.backend", "", kHidden},    // INPUT_ONLY
          {"spec.run_count", "", kHidden},  // asked for; run_count is how many there are
          // What the coordinator goes by: the round says it, or the submission file.
          {"required_run_count spec.replacement_count_max spec.run_timeout", "", kHidden},
          {"spec.epoch_count_max", "epochs_max"},
          {"spec.staging"}};
}

// Of the entry's members those that are about its runs; it alone shows what is new.
std::vector<JsonRow> SetRows() {
  return {Derived("", "id", SetId),     {"name", "entry", kId | kAlways},
          {"state", "", kAlways},       Derived("", "run_count", RunCount),
          {"spec.node_count", "nodes"}, {"spec.round spec.benchmark score_minutes"},
          {"create_time", "created"},   {"runs", "", kId},
          {kRest, "", kHidden}};
}

// ------------------------------------------------------------------------------ members of a run

Json Seconds(const v1::Run& run) {
  const std::optional<double> seconds = TimeToSolutionSeconds(run);
  return seconds.has_value() ? Json(*seconds) : Absent();
}

Json TouchAfterRunStart(const v1::Run& run) {
  const std::optional<double> after_ms = TouchAfterStartMs(run);
  return after_ms.has_value() ? Json(*after_ms) : Absent();
}

Json TouchError(const v1::Run& run) {
  const std::optional<double> error_ms = TouchErrorMs(run);
  return error_ms.has_value() ? Json(*error_ms) : Absent();
}

Json TouchStrength(const v1::Run& run) {
  const bool is_weak = !run.has_first_touch_us() && run.has_observed_touch_us();
  return is_weak && run.has_run_start_ms() ? Json("observed") : Absent();
}

Json ArrivalSeconds(const v1::Run& run) {
  return run.has_arrival_run_ms() ? Json(static_cast<double>(run.arrival_run_ms()) / 1e3)
                                  : Absent();
}

Json TimeErrorSeconds(const v1::Run& run) {
  return run.has_time_error_us() ? Json(static_cast<double>(run.time_error_us()) / 1e6) : Absent();
}

Json CoordinatorSeconds(const v1::Run& run) {
  return run.has_coordinator_run_ms() ? Json(static_cast<double>(run.coordinator_run_ms()) / 1e3)
                                      : Absent();
}

Json CoordinatorErrorSeconds(const v1::Run& run) {
  return run.has_coordinator_error_us()
             ? Json(static_cast<double>(run.coordinator_error_us()) / 1e6)
             : Absent();
}

Json NodesOf(const v1::Run& run) {
  return run.has_submitters_nodes() ? Json("submitter's allocation") : Absent();
}

std::vector<JsonRow> RunRows() {
  return {{"name", "id", kId | kAlways},
          {"submission", "entry", kId | kAlways},
          {"number"},
          {"state", "", kAlways},
          {"state_reason"},
          Derived("", "seconds", Seconds),
          Derived("time_error_us", "error_seconds", TimeErrorSeconds),
          Derived("arrival_run_ms", "arrival_seconds", ArrivalSeconds),
          Derived("coordinator_run_ms", "coordinator_seconds", CoordinatorSeconds),
          Derived("coordinator_error_us", "coordinator_error_seconds", CoordinatorErrorSeconds),
          {"energy_joules energy_error_joules energy_scope switches"},
          {"is_converged", "converged"},
          {"is_compliant", "compliant"},
          {"quality"},
          {"epoch_count", "epochs"},
          {"global_batch_size instance_scale seed"},
          {"workers", "nodes", kId},
          {"cached_workers", "cached_nodes", kId},
          {"node_names"},
          {"allocation", "", kId},
          Derived("has_submitters_nodes", "nodes_of", NodesOf),
          {"create_time", "created"},
          {"start_time", "started"},
          {"end_time", "ended"},
          {"exit_code run_start_ms run_stop_ms first_touch_us observed_touch_us"},
          Derived("touch_after_start_us", "touch_after_run_start_ms", TouchAfterRunStart),
          Derived("touch_error_us", "touch_error_ms", TouchError),
          Derived("", "touch_strength", TouchStrength),
          {"touch_assurance touch_hole_codes"},
          {"staging_ms"},
          {"event_count", "events"},
          {"findings artifacts late_artifacts"},
          {"generation", "", kHidden}};  // the fencing token
}

// --------------------------------------------------------------------- nodes and their allocations

std::vector<JsonRow> NodeRows() {
  return {{"name", "id", kId | kAlways},
          {"state", "", kAlways},
          {"state_reason"},
          {"run allocation", "", kId},
          {"capabilities.host_name", "host"},
          {"capabilities.cpu_model"},
          {"capabilities.core_count", "cores"},
          {"capabilities.memory_bytes"},
          {"capabilities.accelerator_count", "accelerators"},
          {"capabilities.accelerator_model capabilities.backends labels"},
          {"last_seen_time", "last_seen"},
          {"clock_offset_us", "", kAlways, "clock_offset_uncertainty_us"},
          {"clock_offset_uncertainty_us version certificate_generation"},
          {"certificates_revoke_time", "certificates_revoked", 0, "certificate_generation"},
          Derived("system_description_json", "system_description", DescriptionOf<v1::Worker>),
          // The fencing token, and what only the nodes of a gang need of each other.
          {"generation capabilities.rendezvous_address", "", kHidden}};
}

Json AgeSeconds(const v1::NodeFigures& figures) {
  return static_cast<double>(figures.age_ms()) / 1e3;
}

std::vector<JsonRow> PreflightRows() {
  return {{"state", "", kAlways},
          {"submission", "entry", kId},
          {"reason"},
          {"start_time", "started"},
          {"deadline_time", "deadline"},
          {"end_time", "ended"},
          {"percent_of_median number checks"}};
}

std::vector<JsonRow> NodeCheckRows() {
  return {{"check policy", "", kAlways},
          {"value", "", kAlways, "is_measured"},
          {"unit median problem detail"},
          {"is_measured", "", kHidden}};
}

std::vector<JsonRow> AllocationRows() {
  return {{"name", "id", kId | kAlways},
          {"state", "", kAlways},
          {"state_reason launcher node_count"},
          {"workers", "nodes", kId},
          {"labels"},
          {"submission", "entry", kId},
          {"requested_by"},
          {"create_time", "created"},
          {"grant_time", "granted"},
          {"deadline_time", "deadline"},
          {"end_time", "ended"},
          {"failure_count", "failures"},
          {"last_error", "", 0, "failure_count"},
          {"retry_time", "retry", 0, "failure_count"},
          {"lifetime", "", kHidden}};  // once it is granted, deadline says it
}

// ------------------------------------------------------------------------------------- all others

Json Parameters(const v1::Dataset& dataset) {
  Json sorted = Json::object();
  for (const auto& [name, text] :
       std::map<std::string, std::string>(dataset.parameters().begin(), dataset.parameters().end()))
    if (!text.empty()) sorted[name] = JsonOrText(text);
  return sorted;
}

std::vector<JsonRow> DatasetRows() {
  return {{"name", "id", kId | kAlways},
          {"benchmark path"},
          {"train_sample_count", "train_samples", kAlways},
          {"eval_sample_count", "eval_samples", kAlways},
          Derived("parameters", "", Parameters),
          {"compression digest"}};
}

Json Validity(const v1::Token& token) {
  return !token.is_revoked() ? "valid" : token.kind() == v1::Token::ENROL ? "used" : "revoked";
}

Json Severity(const v1::Finding& finding) {
  return finding.severity() == v1::Finding::WARNING ? "warning" : "error";
}

Json AuditBody(const v1::AuditEntry& entry) {
  return ParseJsonDocument<Json>(entry.body_json());
}

std::vector<JsonRow> TokenRows() {
  return {{"name", "id", kId | kAlways},   {"kind", "", kAlways},
          {"role principal organization"}, Derived("is_revoked", "state", Validity),
          {"create_time", "created"},      {"expire_time", "expires"}};
}

std::vector<JsonRow> FindingRows() {
  return {{"rule", "", kAlways},
          Derived("severity", "severity", Severity),
          {"error_class", "class"},
          {"key line expected found remedy"}};
}

std::vector<JsonRow> ReferenceRows() {
  return {{"is_passed", "passed", kAlways},
          {"verdict message normalization", "", kAlways},
          {"mean_epochs min_epochs p_value"},
          {"normalized_score_minutes", "", kHidden}};  // a member of the entry
}

// Of a log, the text is bytes: what is no UTF-8 is replaced when printed. The artifact stays exact.
std::vector<JsonRow> RunEventRows() {
  return {{"seq node_rank kind", "", kAlways},
          {"text line finding"},
          {"wall_us mono_ns", "", kAlways},
          {"receive_us"},
          {"is_late", "late"},
          {"run", "", kHidden},             // the one that was asked for
          {"is_attributed", "", kHidden}};  // the run's touch_strength says it
}

}  // namespace

JsonTables ResourceTables() {
  return {
      {v1::Submission::descriptor(), EntryRows()},
      {v1::Run::descriptor(), RunRows()},
      {v1::Worker::descriptor(), NodeRows()},
      {v1::NodeFigures::descriptor(), {Derived("age_ms", "age_seconds", AgeSeconds)}},
      {v1::Preflight::descriptor(), PreflightRows()},
      {v1::NodeCheck::descriptor(), NodeCheckRows()},
      {v1::Allocation::descriptor(), AllocationRows()},
      {v1::Dataset::descriptor(), DatasetRows()},
      {v1::Token::descriptor(), TokenRows()},
      {v1::Round::descriptor(),
       {{"name", "id", kAlways}, {"is_mlperf_result benchmarks", "", kAlways}, {"label digest"}}},
      {v1::Finding::descriptor(), FindingRows()},
      {v1::ReferenceConvergence::descriptor(), ReferenceRows()},
      {v1::AuditEntry::descriptor(),
       {{"seq time", "", kAlways},
        {"principal type"},
        {"object", "", kId},
        {"outcome detail"},
        Derived("body_json", "body", AuditBody)}},
      {v1::RunEvent::descriptor(), RunEventRows()},
      {v1::BorrowedHyperparameter::descriptor(),
       {{"key", "", kAlways}, {"own_json", "own", kJsonText}, {"json_value", "value", kJsonText}}},
      {v1::Note::descriptor(),
       {{"author", "", kAlways}, {"organization"}, {"create_time", "time"}, {"text", "", kAlways}}},
      {v1::ArtifactRef::descriptor(),
       {{"file_name", "file", kAlways},
        {"size_bytes", "bytes", kAlways},
        {"sha256", "", kAlways}}}};
}

std::string StateText(v1::Submission::State state) {
  return TextOf(state);
}
std::string StateText(v1::Run::State state) {
  return TextOf(state);
}
std::string StateText(v1::Worker::State state) {
  return TextOf(state);
}
std::string StateText(v1::Allocation::State state) {
  return TextOf(state);
}

std::optional<double> TimeToSolutionSeconds(const v1::Run& run) {
  if (!run.has_run_start_ms() || !run.has_run_stop_ms()) return std::nullopt;
  return static_cast<double>(run.run_stop_ms() - run.run_start_ms()) / 1000.0;
}

bool IsEnded(v1::Submission::State state) {
  return state == v1::Submission::VALID || state == v1::Submission::INVALID ||
         state == v1::Submission::CANCELLED;
}

bool IsEnded(v1::Run::State state) {
  return state == v1::Run::SUCCEEDED || state == v1::Run::FAILED || state == v1::Run::CANCELLED;
}

Json EntryJson(const v1::Submission& submission) {
  return Resources().Show(submission);
}

Json SetJson(const v1::Submission& submission) {
  static const MessageJson* const sets =
      new MessageJson({{v1::Submission::descriptor(), SetRows()}});
  return sets->Show(submission);
}

Json RunJson(const v1::Run& run) {
  return Resources().Show(run);
}

Json NodeJson(const v1::Worker& worker) {
  return Resources().Show(worker);
}

Json AllocationJson(const v1::Allocation& allocation) {
  return Resources().Show(allocation);
}

Json DatasetJson(const v1::Dataset& dataset) {
  return Resources().Show(dataset);
}

Json TokenJson(const v1::Token& token) {
  return Resources().Show(token);
}

Json RoundJson(const v1::Round& round) {
  return Resources().Show(round);
}

Json FindingJson(const v1::Finding& finding) {
  return Resources().Show(finding);
}

Json ReferenceJson(const v1::ReferenceConvergence& reference) {
  if (!reference.error().empty()) return {{"error", reference.error()}};
  return Resources().Show(reference);
}

Json AuditJson(const v1::AuditEntry& entry) {
  return Resources().Show(entry);
}

Json RunEventJson(const v1::RunEvent& event) {
  return Resources().Show(event);
}

}  // namespace assay::client
