#include "common/client/resource_json.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/client/ids.h"
#include "common/json_document.h"

namespace assay::client {
namespace {

void Put(Json* json, const char* field, const std::string& value) {
  if (!value.empty()) (*json)[field] = value;
}
void Put(Json* json, const char* field, const google::protobuf::Timestamp& value) {
  Put(json, field, TimeText(value));
}

template <class Map>
void PutMap(Json* json, const char* field, const Map& map) {
  if (map.empty()) return;
  // Sorted: a proto map has no order of its own.
  std::map<std::string, std::string> sorted(map.begin(), map.end());
  (*json)[field] = sorted;
}

template <class Names>
void PutIds(Json* json, const char* field, const Names& names) {
  if (names.empty()) return;
  Json ids = Json::array();
  for (const std::string& name : names)
    ids.push_back(ShortId(name));
  (*json)[field] = ids;
}

void PutArtifacts(Json* json, const char* key,
                  const google::protobuf::RepeatedPtrField<v1::ArtifactRef>& refs) {
  Json artifacts = Json::array();
  for (const v1::ArtifactRef& artifact : refs)
    artifacts.push_back({{"file", artifact.file_name()},
                         {"bytes", artifact.size_bytes()},
                         {"sha256", artifact.sha256()}});
  if (!artifacts.empty()) (*json)[key] = artifacts;
}

void PutFindings(Json* json, const google::protobuf::RepeatedPtrField<v1::Finding>& findings) {
  if (findings.empty()) return;
  Json array = Json::array();
  for (const v1::Finding& finding : findings)
    array.push_back(FindingJson(finding));
  (*json)["findings"] = array;
}

Json HyperparametersJson(const v1::SubmissionSpec& spec) {
  Json object = Json::object();
  for (const v1::Hyperparameter& parameter : spec.hyperparameters()) {
    Json value = ParseJsonDocument<Json>(parameter.json_value());
    object[parameter.key()] = value.is_discarded() ? Json(parameter.json_value()) : value;
  }
  return object;
}

void PutJsonText(Json* json, const char* field, const std::string& text) {
  if (text.empty()) return;
  Json value = ParseJsonDocument<Json>(text);
  (*json)[field] = value.is_discarded() ? Json(text) : value;
}

void PutBorrowing(Json* json, const v1::Submission& submission) {
  const v1::HyperparameterBorrowing& borrowing = submission.spec().borrowing();
  const v1::BorrowingRecord& record = submission.borrowing();
  Put(json, "borrowed_from", ShortId(borrowing.lender_entry()));
  Put(json, "borrowed_from_created", record.lender_create_time());
  Put(json, "borrowed_for", ShortId(borrowing.own_entry()));
  Put(json, "borrowed_for_created", record.own_create_time());
  Put(json, "borrowed", submission.create_time());
  Json values = Json::array();
  for (const v1::BorrowedHyperparameter& change : record.changes()) {
    Json value = {{"key", change.key()}};
    PutJsonText(&value, "own", change.own_json());
    PutJsonText(&value, "value", change.json_value());
    Put(&value, "standing", change.standing());
    values.push_back(std::move(value));
  }
  (*json)["borrowed_values"] = std::move(values);
}

void PutReference(Json* json, const v1::ReferenceConvergence& reference) {
  (*json)["reference_verdict"] =
      reference.error().empty() ? reference.verdict() : absl::StrCat("none: ", reference.error());
  if (reference.has_normalized_score_minutes())
    (*json)["normalized_score_minutes"] = reference.normalized_score_minutes();
  (*json)["convergence"] = ReferenceJson(reference);
}

// "s-42" for submissions/e-42.
std::string SetId(const v1::Submission& submission) {
  const std::string id = ShortId(submission.name());
  return absl::StartsWith(id, "e-") ? absl::StrCat("s-", id.substr(2)) : id;
}

template <class State>
std::string Lower(const std::string& name, State /*state*/) {
  if (name.empty()) return "unknown";
  return absl::StrContains(name, "UNSPECIFIED") ? "unknown" : absl::AsciiStrToLower(name);
}

}  // namespace

std::string StateText(v1::Submission::State state) {
  return Lower(v1::Submission::State_Name(state), state);
}
std::string StateText(v1::Run::State state) {
  return Lower(v1::Run::State_Name(state), state);
}
std::string StateText(v1::Worker::State state) {
  return Lower(v1::Worker::State_Name(state), state);
}

std::string StateText(v1::Allocation::State state) {
  return Lower(v1::Allocation::State_Name(state), state);
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0 && time.nanos() == 0) return "";
  const absl::Time instant =
      absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", absl::FromUnixMicros(absl::ToUnixMicros(instant)),
                          absl::UTCTimeZone());
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
  const v1::SubmissionSpec& spec = submission.spec();
  Json json = {{"id", ShortId(submission.name())},
               {"set", SetId(submission)},
               {"state", StateText(submission.state())}};
  Put(&json, "state_reason", submission.state_reason());
  Put(&json, "organization", spec.organization());
  Put(&json, "system", spec.system());
  Put(&json, "benchmark", spec.benchmark());
  Put(&json, "division", spec.division());
  Put(&json, "round", spec.round());
  Put(&json, "scaling", submission.scaling());
  if (submission.has_score_minutes()) json["score_minutes"] = submission.score_minutes();
  if (submission.has_reference()) PutReference(&json, submission.reference());
  if (submission.has_throughput()) {
    const v1::Throughput& throughput = submission.throughput();
    json["models_per_minute"] = throughput.models_per_minute();
    json["model_count"] = throughput.model_count();
    json["pruned_count"] = throughput.pruned_count();
    if (throughput.instance_scale() > 0) json["instance_scale"] = throughput.instance_scale();
    json["time_to_all_minutes"] = throughput.time_to_all_minutes();
  }
  json["is_mlperf_result"] = submission.is_mlperf_result();
  json["is_imported"] = submission.is_imported();
  Put(&json, "dataset", spec.dataset());
  if (spec.node_count() > 0) json["nodes"] = spec.node_count();
  if (spec.ranks_per_node() > 0) json["ranks_per_node"] = spec.ranks_per_node();
  json["run_count"] = submission.runs_size();
  Put(&json, "backend", spec.trainer().backend());
  Put(&json, "status", spec.status());
  if (spec.hyperparameters_size() > 0) json["hyperparameters"] = HyperparametersJson(spec);
  if (spec.has_borrowing()) PutBorrowing(&json, submission);
  PutMap(&json, "labels", spec.worker_labels());
  Put(&json, "submitter", submission.submitter());
  Put(&json, "created", submission.create_time());
  Put(&json, "ended", submission.end_time());
  Put(&json, "rules_digest", submission.rules_digest());
  Put(&json, "source_path", submission.source_path());
  PutIds(&json, "runs", submission.runs());
  PutFindings(&json, submission.findings());
  for (const v1::Note& note : submission.notes()) {
    Json one = {{"author", note.author()}};
    Put(&one, "organization", note.organization());
    Put(&one, "time", note.create_time());
    one["text"] = note.text();
    json["notes"].push_back(std::move(one));
  }
  return json;
}

Json ReferenceJson(const v1::ReferenceConvergence& reference) {
  if (!reference.error().empty()) return {{"error", reference.error()}};
  Json json = {{"passed", reference.is_passed()},
               {"verdict", reference.verdict()},
               {"message", reference.message()},
               {"normalization", reference.normalization()}};
  if (reference.has_mean_epochs()) json["mean_epochs"] = reference.mean_epochs();
  if (reference.has_min_epochs()) json["min_epochs"] = reference.min_epochs();
  if (reference.has_p_value()) json["p_value"] = reference.p_value();
  return json;
}

Json SetJson(const v1::Submission& submission) {
  const std::string id = ShortId(submission.name());
  Json json = {{"id", SetId(submission)},
               {"entry", id},
               {"state", StateText(submission.state())},
               {"run_count", submission.runs_size()}};
  if (submission.spec().node_count() > 0) json["nodes"] = submission.spec().node_count();
  Put(&json, "round", submission.spec().round());
  Put(&json, "benchmark", submission.spec().benchmark());
  if (submission.has_score_minutes()) json["score_minutes"] = submission.score_minutes();
  Put(&json, "created", submission.create_time());
  PutIds(&json, "runs", submission.runs());
  return json;
}

Json RunJson(const v1::Run& run) {
  Json json = {{"id", ShortId(run.name())}, {"entry", ShortId(run.submission())}};
  if (run.number() > 0) json["number"] = run.number();
  json["state"] = StateText(run.state());
  Put(&json, "state_reason", run.state_reason());
  if (const auto seconds = TimeToSolutionSeconds(run); seconds.has_value())
    json["seconds"] = *seconds;
  if (run.has_is_converged()) json["converged"] = run.is_converged();
  if (run.has_is_compliant()) json["compliant"] = run.is_compliant();
  if (run.has_quality()) json["quality"] = run.quality();
  if (run.has_epoch_count()) json["epochs"] = run.epoch_count();
  if (run.global_batch_size() > 0) json["global_batch_size"] = run.global_batch_size();
  if (run.instance_scale() > 0) json["instance_scale"] = run.instance_scale();
  if (run.seed() != 0) json["seed"] = run.seed();
  PutIds(&json, "nodes", run.workers());
  if (!run.allocation().empty()) json["allocation"] = ShortId(run.allocation());
  Put(&json, "created", run.create_time());
  Put(&json, "started", run.start_time());
  Put(&json, "ended", run.end_time());
  if (run.has_exit_code()) json["exit_code"] = run.exit_code();
  if (run.has_run_start_ms()) json["run_start_ms"] = run.run_start_ms();
  if (run.has_run_stop_ms()) json["run_stop_ms"] = run.run_stop_ms();
  if (run.has_first_touch_us()) json["first_touch_us"] = run.first_touch_us();
  if (run.has_observed_touch_us()) json["observed_touch_us"] = run.observed_touch_us();
  const bool is_witnessed = run.has_first_touch_us() || run.has_observed_touch_us();
  if (is_witnessed && run.has_run_start_ms()) {
    const int64_t touch_us =
        run.has_first_touch_us() ? run.first_touch_us() : run.observed_touch_us();
    json["touch_after_run_start_ms"] =
        static_cast<double>(touch_us) / 1000.0 - static_cast<double>(run.run_start_ms());
    if (!run.has_first_touch_us()) json["touch_strength"] = "observed";
  }
  if (run.has_staging_ms()) json["staging_ms"] = run.staging_ms();
  if (run.event_count() > 0) json["events"] = run.event_count();
  PutFindings(&json, run.findings());
  PutArtifacts(&json, "artifacts", run.artifacts());
  PutArtifacts(&json, "late_artifacts", run.late_artifacts());
  return json;
}

Json NodeJson(const v1::Worker& worker) {
  Json json = {{"id", ShortId(worker.name())}, {"state", StateText(worker.state())}};
  if (!worker.run().empty()) json["run"] = ShortId(worker.run());
  if (!worker.allocation().empty()) json["allocation"] = ShortId(worker.allocation());
  const v1::Capabilities& facts = worker.capabilities();
  Put(&json, "host", facts.host_name());
  if (facts.core_count() > 0) json["cores"] = facts.core_count();
  if (facts.memory_bytes() > 0) json["memory_bytes"] = facts.memory_bytes();
  if (facts.accelerator_count() > 0) json["accelerators"] = facts.accelerator_count();
  Put(&json, "accelerator_model", facts.accelerator_model());
  if (facts.backends_size() > 0)
    json["backends"] = std::vector<std::string>(facts.backends().begin(), facts.backends().end());
  PutMap(&json, "labels", worker.labels());
  Put(&json, "last_seen", worker.last_seen_time());
  if (worker.clock_offset_uncertainty_us() > 0) {
    json["clock_offset_us"] = worker.clock_offset_us();
    json["clock_offset_uncertainty_us"] = worker.clock_offset_uncertainty_us();
  }
  Put(&json, "version", worker.version());
  if (worker.certificate_generation() > 0) {
    json["certificate_generation"] = worker.certificate_generation();
    Put(&json, "certificates_revoked", worker.certificates_revoke_time());
  }
  Json description = ParseJsonDocument<Json>(worker.system_description_json());
  if (description.is_object()) json["system_description"] = description;
  return json;
}

Json AllocationJson(const v1::Allocation& allocation) {
  Json json = {{"id", ShortId(allocation.name())}, {"state", StateText(allocation.state())}};
  Put(&json, "state_reason", allocation.state_reason());
  Put(&json, "launcher", allocation.launcher());
  if (allocation.node_count() > 0) json["node_count"] = allocation.node_count();
  PutIds(&json, "nodes", allocation.workers());
  PutMap(&json, "labels", allocation.labels());
  if (!allocation.submission().empty()) json["entry"] = ShortId(allocation.submission());
  Put(&json, "requested_by", allocation.requested_by());
  Put(&json, "created", allocation.create_time());
  Put(&json, "granted", allocation.grant_time());
  Put(&json, "deadline", allocation.deadline_time());
  Put(&json, "ended", allocation.end_time());
  if (allocation.failure_count() > 0) {
    json["failures"] = allocation.failure_count();
    Put(&json, "last_error", allocation.last_error());
    Put(&json, "retry", allocation.retry_time());
  }
  return json;
}

Json DatasetJson(const v1::Dataset& dataset) {
  Json json = {{"id", ShortId(dataset.name())}};
  Put(&json, "benchmark", dataset.benchmark());
  Put(&json, "path", dataset.path());
  json["train_samples"] = dataset.train_sample_count();
  json["eval_samples"] = dataset.eval_sample_count();
  const std::map<std::string, std::string> parameters(dataset.parameters().begin(),
                                                      dataset.parameters().end());
  for (const auto& [name, text] : parameters)
    if (!json.contains(name)) PutJsonText(&json, name.c_str(), text);
  Put(&json, "compression", dataset.compression());
  Put(&json, "digest", dataset.digest());
  return json;
}

Json TokenJson(const v1::Token& token) {
  Json json = {{"id", ShortId(token.name())}};
  Put(&json, "kind", Lower(v1::Token::Kind_Name(token.kind()), token.kind()));
  Put(&json, "role", token.role());
  Put(&json, "principal", token.principal());
  Put(&json, "organization", token.organization());
  const bool is_enrolment = token.kind() == v1::Token::ENROL;
  json["state"] = !token.is_revoked() ? "valid" : is_enrolment ? "used" : "revoked";
  Put(&json, "created", token.create_time());
  Put(&json, "expires", token.expire_time());
  return json;
}

Json RoundJson(const v1::Round& round) {
  Json json = {{"id", round.name()}, {"is_mlperf_result", round.is_mlperf_result()}};
  json["benchmarks"] =
      std::vector<std::string>(round.benchmarks().begin(), round.benchmarks().end());
  Put(&json, "label", round.label());
  Put(&json, "digest", round.digest());
  return json;
}

Json FindingJson(const v1::Finding& finding) {
  Json json = {{"rule", finding.rule()},
               {"severity", finding.severity() == v1::Finding::WARNING ? "warning" : "error"}};
  Put(&json, "class", finding.error_class());
  Put(&json, "key", finding.key());
  if (finding.line() > 0) json["line"] = finding.line();
  Put(&json, "expected", finding.expected());
  Put(&json, "found", finding.found());
  Put(&json, "remedy", finding.remedy());
  return json;
}

Json AuditJson(const v1::AuditEntry& entry) {
  Json json = {{"seq", entry.seq()}, {"time", TimeText(entry.time())}};
  Put(&json, "principal", entry.principal());
  Put(&json, "type", entry.type());
  Json body = ParseJsonDocument<Json>(entry.body_json());
  if (!body.is_discarded()) json["body"] = body;
  return json;
}

Json RunEventJson(const v1::RunEvent& event) {
  Json json = {{"seq", event.seq()},
               {"node_rank", event.node_rank()},
               {"kind", Lower(v1::RunEvent::Kind_Name(event.kind()), event.kind())}};
  // Logs are bytes; what is no UTF-8 is replaced when printed. The artifact stays exact.
  Put(&json, "text", event.text());
  if (event.line() > 0) json["line"] = event.line();
  if (event.has_finding()) json["finding"] = FindingJson(event.finding());
  json["wall_us"] = event.wall_us();
  json["mono_ns"] = event.mono_ns();
  if (event.receive_us() > 0) json["receive_us"] = event.receive_us();
  if (event.is_late()) json["late"] = true;
  return json;
}

}  // namespace assay::client
