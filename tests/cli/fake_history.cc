// What the fake coordinator has of ended runs: their files, and answers to questions about entries.

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"

#include "common/client/resource_json.h"
#include "common/filter.h"
#include "common/history_fields.h"
#include "common/sha256.h"
#include "tests/cli/fake_coordinator.h"

namespace assay::testing {

void FakeCoordinator::AddArtifact(const std::string& name, const std::string& bytes) {
  const std::string digest = Sha256Hex(bytes);
  artifacts[digest] = bytes;
  for (v1::Run& run : runs) {
    v1::ArtifactRef* const file = run.add_artifacts();
    file->set_file_name(name);
    file->set_sha256(digest);
    file->set_size_bytes(static_cast<int64_t>(bytes.size()));
  }
}

grpc::Status FakeCoordinator::QueryResults(grpc::ServerContext* /*context*/,
                                           const v1::QueryResultsRequest* request,
                                           v1::QueryResultsResponse* response) {
  const absl::StatusOr<FilterNode> filter =
      ParseFilter(request->filter(), HistorySchema(HistoryKind::kEntry, nullptr), absl::Now());
  if (!filter.ok())
    return {grpc::StatusCode::INVALID_ARGUMENT, std::string(filter.status().message())};
  response->add_columns()->set_name("id");
  for (const v1::Submission& entry : entries) {
    const client::Json json = client::EntryJson(entry);
    const auto value_of = [&json](const std::string& field, const std::string&) -> FilterValue {
      if (!json.contains(field) || !json[field].is_string()) return std::monostate();
      return json[field].get<std::string>();
    };
    if (!Matches(*filter, value_of)) continue;
    response->add_rows()->add_values()->set_text(json["id"].get<std::string>());
  }
  response->set_total_count(response->rows_size());
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::WithdrawSubmission(grpc::ServerContext* /*context*/,
                                                 const v1::WithdrawSubmissionRequest* request,
                                                 v1::Submission* response) {
  MutexLock lock(&mutex_);
  v1::Submission* entry = FindEntry(request->name());
  if (entry == nullptr) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such submission");
  entry->mutable_withdraw_time()->set_seconds(1704110400);
  entry->set_withdraw_reason("withdrawn by alice: " + request->reason());
  *response = *entry;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::LabelWorker(grpc::ServerContext* /*context*/,
                                          const v1::LabelWorkerRequest* request,
                                          v1::Worker* response) {
  MutexLock lock(&mutex_);
  for (v1::Worker& worker : workers) {
    if (worker.name() != request->name()) continue;
    for (const auto& [name, value] : request->labels())
      (*worker.mutable_operator_labels())[name] = value;
    for (const std::string& name : request->removed())
      worker.mutable_operator_labels()->erase(name);
    *response = worker;
    return grpc::Status::OK;
  }
  return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such worker");
}

grpc::Status FakeCoordinator::GetDiagnostics(grpc::ServerContext* /*context*/,
                                             const v1::GetDiagnosticsRequest* /*request*/,
                                             v1::Diagnostics* response) {
  *response = diagnostics;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListAudit(grpc::ServerContext* /*context*/,
                                        const v1::ListAuditRequest* request,
                                        v1::ListAuditResponse* response) {
  for (const v1::AuditEntry& row : audit)
    if (row.seq() > request->after_seq()) *response->add_entries() = row;
  return grpc::Status::OK;
}

}  // namespace assay::testing
