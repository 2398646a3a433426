#include "server/api/convert.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rapidjson/document.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"

#include "common/json_reader.h"
#include "common/rpc/finding_proto.h"
#include "common/status.h"
#include "server/core/event.h"

namespace assay::api {
namespace {

// A text from outside, safe to show in a message.
std::string Shown(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 80)), "\"");
}

absl::StatusOr<absl::string_view> StripCollection(absl::string_view name,
                                                  absl::string_view collection,
                                                  absl::string_view example) {
  if (absl::ConsumePrefix(&name, collection)) return name;
  return absl::InvalidArgumentError(
      absl::StrCat("not a resource name: ", Shown(name), "; expected ", collection, example));
}

v1::Run::State ValueOf(core::RunState state) {
  switch (state) {
    case core::RunState::kQueued:
      return v1::Run::QUEUED;
    case core::RunState::kAssigned:
      return v1::Run::ASSIGNED;
    case core::RunState::kRunning:
      return v1::Run::RUNNING;
    case core::RunState::kUploading:
      return v1::Run::UPLOADING;
    case core::RunState::kSucceeded:
      return v1::Run::SUCCEEDED;
    case core::RunState::kFailed:
      return v1::Run::FAILED;
    case core::RunState::kCancelled:
      return v1::Run::CANCELLED;
  }
  return v1::Run::STATE_UNSPECIFIED;
}

v1::RunEvent::Kind ValueOf(core::RunEventKind kind) {
  switch (kind) {
    case core::RunEventKind::kLogLine:
      return v1::RunEvent::LOG_LINE;
    case core::RunEventKind::kFirstTouch:
      return v1::RunEvent::FIRST_TOUCH;
    case core::RunEventKind::kFinding:
      return v1::RunEvent::FINDING;
    case core::RunEventKind::kProgress:
      return v1::RunEvent::PROGRESS;
  }
  return v1::RunEvent::KIND_UNSPECIFIED;
}

// Until a run starts its seed is its worker's alone.
bool IsSeedShown(core::RunState state) {
  return state != core::RunState::kQueued && state != core::RunState::kAssigned;
}

// The body of an event without the seeds of runs that may not have started.
std::string ShownBody(const core::EventRow& row) {
  if (row.type != core::SubmissionCreated::kType) return row.body_json;
  rapidjson::Document body;
  body.Parse(row.body_json.data(), row.body_json.size());
  if (body.HasParseError() || !body.IsObject()) return "{}";
  body.RemoveMember("seeds");
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  body.Accept(writer);
  return std::string(text.GetString(), text.GetSize());
}

void SetFacts(const core::RunFacts& facts, v1::Run* run) {
  if (facts.is_compliant) run->set_is_compliant(*facts.is_compliant);
  if (facts.is_converged) run->set_is_converged(*facts.is_converged);
  if (facts.run_start_ms) run->set_run_start_ms(*facts.run_start_ms);
  if (facts.run_stop_ms) run->set_run_stop_ms(*facts.run_stop_ms);
  if (facts.quality) run->set_quality(*facts.quality);
  if (facts.epoch_count) run->set_epoch_count(*facts.epoch_count);
  if (facts.staging_ms) run->set_staging_ms(*facts.staging_ms);
  run->set_global_batch_size(facts.global_batch_size);
  run->set_instance_scale(facts.instance_scale);
  for (const core::Finding& finding : facts.findings)
    *run->add_findings() = FindingToProto(finding);
}

}  // namespace

// ------------------------------------------------------------------------------------------ names

absl::StatusOr<core::SubmissionId> ParseSubmissionName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "submissions/", "e-42"));
  return core::ParseSubmissionId(id);
}

absl::StatusOr<core::RunId> ParseRunName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "runs/", "r-901"));
  return core::ParseRunId(id);
}

absl::StatusOr<core::TokenId> ParseTokenName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "tokens/", "t-7"));
  return core::ParseTokenId(id);
}

absl::StatusOr<core::AllocationId> ParseAllocationName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "allocations/", "a-1"));
  return core::ParseAllocationId(id);
}

absl::StatusOr<std::string> ParseWorkerName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "workers/", "w0"));
  RETURN_IF_ERROR(core::CheckName("worker", id));
  return std::string(id);
}

absl::StatusOr<std::string> ParseDatasetName(absl::string_view name) {
  ASSIGN_OR_RETURN(const absl::string_view id, StripCollection(name, "datasets/", "cosmo32"));
  RETURN_IF_ERROR(core::CheckName("dataset", id));
  return std::string(id);
}

std::string NameOf(core::SubmissionId id) {
  return id.is_none() ? "" : absl::StrCat("submissions/", id.ToString());
}
std::string NameOf(core::RunId id) {
  return id.is_none() ? "" : absl::StrCat("runs/", id.ToString());
}
std::string NameOf(core::TokenId id) {
  return id.is_none() ? "" : absl::StrCat("tokens/", id.ToString());
}
std::string NameOf(core::AllocationId id) {
  return id.is_none() ? "" : absl::StrCat("allocations/", id.ToString());
}
std::string WorkerName(absl::string_view worker) {
  return absl::StrCat("workers/", worker);
}
std::string DatasetName(absl::string_view dataset) {
  return absl::StrCat("datasets/", dataset);
}

// -------------------------------------------------------------------------------------- to
// messages

void SetTime(int64_t us, google::protobuf::Timestamp* time) {
  time->set_seconds(us / 1'000'000);
  time->set_nanos(static_cast<int32_t>(us % 1'000'000 * 1000));
}

v1::Run ToProto(const core::Run& run) {
  v1::Run message;
  message.set_name(NameOf(run.id));
  message.set_submission(NameOf(run.submission));
  message.set_number(run.number);
  if (IsSeedShown(run.state)) message.set_seed(run.seed);
  message.set_state(ValueOf(run.state));
  message.set_state_reason(run.state_reason);
  message.set_generation(run.generation);
  for (const core::RunNode& node : run.nodes)
    message.add_workers(WorkerName(node.worker));
  message.set_allocation(NameOf(run.allocation));
  if (!run.nodes.empty()) message.set_event_count(run.nodes[0].last_seq);
  if (run.created_at_us != 0) SetTime(run.created_at_us, message.mutable_create_time());
  if (run.started_at_us != 0) SetTime(run.started_at_us, message.mutable_start_time());
  if (run.ended_at_us != 0) SetTime(run.ended_at_us, message.mutable_end_time());
  if (run.exit_code) message.set_exit_code(*run.exit_code);
  if (run.first_touch) message.set_first_touch_us(run.first_touch->at_us);
  if (run.observed_touch) message.set_observed_touch_us(run.observed_touch->at_us);
  SetFacts(run.facts, &message);
  for (const core::ArtifactRef& artifact : run.artifacts)
    *message.add_artifacts() = ToProto(artifact);
  for (const core::ArtifactRef& artifact : run.late_artifacts)
    *message.add_late_artifacts() = ToProto(artifact);
  return message;
}

v1::RunEvent ToProto(const core::RunEvent& event, core::RunId run) {
  v1::RunEvent message;
  message.set_seq(event.seq);
  message.set_kind(ValueOf(event.kind));
  message.set_text(event.text);
  message.set_wall_us(event.wall_us);
  message.set_mono_ns(event.mono_ns);
  message.set_line(event.line);
  if (event.finding) *message.mutable_finding() = FindingToProto(*event.finding);
  message.set_receive_us(event.receive_us);
  message.set_node_rank(event.node_rank);
  message.set_run(NameOf(run));
  message.set_is_late(event.is_late);
  message.set_is_attributed(event.is_attributed);
  return message;
}

v1::ArtifactRef ToProto(const core::ArtifactRef& artifact) {
  v1::ArtifactRef message;
  message.set_file_name(artifact.file_name);
  message.set_sha256(artifact.sha256);
  message.set_size_bytes(artifact.size_bytes);
  return message;
}

v1::Dataset ToProto(const core::Dataset& dataset) {
  v1::Dataset message;
  message.set_name(DatasetName(dataset.id));
  message.set_benchmark(dataset.benchmark);
  message.set_path(dataset.path);
  message.set_digest(dataset.digest);
  message.set_train_sample_count(dataset.train_sample_count);
  message.set_eval_sample_count(dataset.eval_sample_count);
  message.set_compression(dataset.compression);
  message.mutable_parameters()->insert(dataset.parameters.begin(), dataset.parameters.end());
  return message;
}

v1::Token ToProto(const core::Token& token) {
  v1::Token message;
  message.set_name(NameOf(token.id));
  message.set_kind(token.kind == core::TokenKind::kAccess ? v1::Token::ACCESS : v1::Token::ENROL);
  message.set_role(token.role);
  message.set_principal(token.principal);
  message.set_organization(token.organization);
  SetTime(token.created_at_us, message.mutable_create_time());
  SetTime(token.expires_at_us, message.mutable_expire_time());
  message.set_is_revoked(token.is_revoked);
  return message;
}

v1::Event ToProto(const core::EventRow& row) {
  v1::Event message;
  message.set_seq(row.seq);
  SetTime(row.at_us, message.mutable_time());
  message.set_type(row.type);
  message.set_principal(row.principal);
  message.set_submission(NameOf(row.submission));
  message.set_run(NameOf(row.run));
  message.set_body_json(ShownBody(row));
  return message;
}

v1::AuditEntry ToAuditEntry(const core::EventRow& row) {
  v1::AuditEntry message;
  message.set_seq(row.seq);
  SetTime(row.at_us, message.mutable_time());
  message.set_principal(row.principal);
  message.set_type(row.type);
  message.set_body_json(ShownBody(row));
  return message;
}

v1::Round ToProto(const runtime::RoundInfo& round) {
  v1::Round message;
  message.set_name(round.name);
  message.set_digest(round.digest);
  message.set_is_mlperf_result(round.is_mlperf_result);
  message.set_label(round.label);
  for (const std::string& benchmark : round.benchmarks)
    message.add_benchmarks(benchmark);
  return message;
}

v1::ExplainSubmissionResponse ToProto(const core::Explanation& explanation) {
  v1::ExplainSubmissionResponse message;
  message.set_reason(std::string(core::ToString(explanation.reason)));
  if (explanation.since_us != 0) SetTime(explanation.since_us, message.mutable_since_time());
  message.set_explanation(explanation.explanation);
  message.set_remedy(explanation.remedy);
  message.set_queue_position(explanation.queue_position);
  return message;
}

// ------------------------------------------------------------------------------------ from
// messages

core::ArtifactRef FromProto(const v1::ArtifactRef& artifact) {
  return {.file_name = artifact.file_name(),
          .sha256 = artifact.sha256(),
          .size_bytes = artifact.size_bytes()};
}

absl::StatusOr<core::Dataset> FromProto(const v1::Dataset& dataset) {
  core::Dataset value;
  ASSIGN_OR_RETURN(value.id, ParseDatasetName(dataset.name()));
  if (dataset.path().empty() || dataset.path()[0] != '/') {
    return absl::InvalidArgumentError(absl::StrCat("dataset.path is ", Shown(dataset.path()),
                                                   ": give an absolute path, the same on every "
                                                   "worker"));
  }
  value.benchmark = dataset.benchmark();
  value.path = dataset.path();
  value.digest = dataset.digest();
  value.train_sample_count = dataset.train_sample_count();
  value.eval_sample_count = dataset.eval_sample_count();
  value.compression = dataset.compression();
  for (const auto& [name, text] : dataset.parameters()) {
    const JsonResult parsed = ParseJson(text);
    if (parsed.error != JsonError::kNone)
      return absl::InvalidArgumentError(
          absl::StrCat("dataset.parameters[", Shown(name), "] is not JSON: ", Shown(text)));
    value.parameters[name] = DumpJson(parsed.value);
  }
  return value;
}

absl::Status CheckRequestId(absl::string_view request_id) {
  const bool is_plain = std::all_of(request_id.begin(), request_id.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!request_id.empty() && is_plain) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "request_id is ", Shown(request_id), ": send a new UUID, and the same one when you retry"));
}

v1::VerifyStoreResponse ToProto(const core::StoredFault& fault) {
  v1::VerifyStoreResponse response;
  response.mutable_fault()->set_file(fault.file);
  response.mutable_fault()->set_object(fault.object);
  response.mutable_fault()->set_problem(fault.problem);
  return response;
}

v1::VerifyStoreResponse ToProto(const core::VerifyCounts& counts, int64_t fault_count) {
  v1::VerifyStoreResponse response;
  v1::VerifySummary* const summary = response.mutable_summary();
  summary->set_fault_count(fault_count);
  summary->set_page_count(counts.page_count);
  summary->set_frame_count(counts.frame_count);
  summary->set_event_count(counts.event_count);
  summary->set_line_count(counts.line_count);
  summary->set_artifact_count(counts.artifact_count);
  return response;
}

}  // namespace assay::api
