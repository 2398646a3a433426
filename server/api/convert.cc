#include "server/api/convert.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "rapidjson/document.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"

#include "common/json_reader.h"
#include "common/rpc/finding_proto.h"
#include "common/status.h"
#include "server/api/names.h"
#include "server/api/proto_archive.h"
#include "server/core/description.h"
#include "server/core/event.h"

namespace assay::api {
namespace {

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

// The body of an event without the seeds of runs that may not have started, and without what a
// token's secret is known by.
std::string ShownBody(const core::EventRow& row) {
  const bool is_token = row.type == core::TokenCreated::kType;
  if (row.type != core::SubmissionCreated::kType && !is_token) return row.body_json;
  rapidjson::Document body;
  body.Parse(row.body_json.data(), row.body_json.size());
  if (body.HasParseError() || !body.IsObject()) return "{}";
  body.RemoveMember("seeds");
  if (is_token && body.HasMember("token") && body["token"].IsObject())
    body["token"].RemoveMember("secret_sha256");
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  body.Accept(writer);
  return std::string(text.GetString(), text.GetSize());
}

}  // namespace

// -------------------------------------------------------------------------------------- to
// messages

void SetTime(int64_t us, google::protobuf::Timestamp* time) {
  time->set_seconds(us / 1'000'000);
  time->set_nanos(static_cast<int32_t>(us % 1'000'000 * 1000));
}

v1::Run ToProto(const core::Run& run) {
  v1::Run message = Described<v1::Run>(run);
  if (!core::IsSeedShown(run.state)) message.clear_seed();
  for (const core::RunNode& node : run.nodes)
    message.add_workers(WorkerName(node.worker));
  if (!run.nodes.empty()) message.set_event_count(run.nodes[0].last_seq);
  if (run.first_touch) message.set_first_touch_us(run.first_touch->at_us);
  if (run.observed_touch) message.set_observed_touch_us(run.observed_touch->at_us);
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
  return Described<v1::ArtifactRef>(artifact);
}

v1::View ToProto(const core::View& view) {
  return Described<v1::View>(view);
}

v1::Dataset ToProto(const core::Dataset& dataset) {
  return Described<v1::Dataset>(dataset);
}

v1::Token ToProto(const core::Token& token) {
  return Described<v1::Token>(token);
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

v1::AuditEntry ToAuditEntry(const core::AuditRow& row) {
  v1::AuditEntry message;
  message.set_seq(row.event.seq);
  SetTime(row.event.at_us, message.mutable_time());
  message.set_principal(row.event.principal);
  message.set_type(row.event.type);
  message.set_object(row.object);
  message.set_detail(row.detail);
  message.set_outcome(row.event.type == core::CallsRefused::kType ? "refused" : "done");
  if (!row.event.body_json.empty()) message.set_body_json(ShownBody(row.event));
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

core::View FromProto(const v1::View& view) {
  return core::View{.name = view.name(),
                    .is_shared = view.is_shared(),
                    .kind = view.kind(),
                    .filter = view.filter(),
                    .order_by = view.order_by(),
                    .columns = {view.columns().begin(), view.columns().end()},
                    .group_by = {view.group_by().begin(), view.group_by().end()},
                    .aggregates = {view.aggregates().begin(), view.aggregates().end()}};
}

absl::StatusOr<core::Dataset> FromProto(const v1::Dataset& dataset) {
  RETURN_IF_ERROR(ParseDatasetName(dataset.name()).status());
  if (dataset.path().empty() || dataset.path()[0] != '/') {
    return absl::InvalidArgumentError(absl::StrCat("dataset.path is ", Shown(dataset.path()),
                                                   ": give an absolute path, the same on every "
                                                   "worker"));
  }
  ASSIGN_OR_RETURN(core::Dataset value, ReadDescribed<core::Dataset>(dataset, "dataset"));
  for (auto& [name, text] : value.parameters) {
    const JsonResult parsed = ParseJson(text);
    if (parsed.error != JsonError::kNone)
      return absl::InvalidArgumentError(
          absl::StrCat("dataset.parameters[", Shown(name), "] is not JSON: ", Shown(text)));
    text = DumpJson(parsed.value);
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
  ToProto(fault, response.mutable_fault());
  return response;
}

void ToProto(const core::StoredFault& fault, v1::StoreFault* message) {
  message->set_file(fault.file);
  message->set_object(fault.object);
  message->set_problem(fault.problem);
}

v1::StoreBackup ToProto(const core::BackupCounts& counts, int64_t fault_count) {
  v1::StoreBackup backup;
  backup.set_event_seq(counts.event_seq);
  backup.set_page_count(counts.page_count);
  backup.set_copied_page_count(counts.copied_page_count);
  backup.set_artifact_count(counts.artifact_count);
  backup.set_linked_artifact_count(counts.linked_artifact_count);
  backup.set_copied_artifact_count(counts.copied_artifact_count);
  backup.set_kept_artifact_count(counts.kept_artifact_count);
  backup.set_artifact_bytes(counts.artifact_bytes);
  backup.set_fault_count(fault_count);
  return backup;
}

v1::StoreUsage ToProto(const core::StoreUsage& usage) {
  v1::StoreUsage message;
  int64_t bytes = 0;
  for (const core::UsageOfKind& kind : usage.kinds) {
    v1::UsageOfKind* const row = message.add_kinds();
    row->set_kind(kind.kind);
    row->set_count(kind.count);
    row->set_bytes(kind.bytes);
    bytes += kind.bytes;
  }
  message.set_bytes(bytes);
  message.set_free_bytes(usage.free_bytes);
  return message;
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
  summary->set_score_count(counts.score_count);
  summary->set_uncomputed_score_count(counts.uncomputed_score_count);
  return response;
}

}  // namespace assay::api
