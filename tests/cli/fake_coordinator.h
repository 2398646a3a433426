// A coordinator with canned resources behind a real gRPC server on a Unix socket.

#ifndef TESTS_CLI_FAKE_COORDINATOR_H_
#define TESTS_CLI_FAKE_COORDINATOR_H_

#include <grpcpp/server.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "assay/v1/admin_service.grpc.pb.h"
#include "assay/v1/history_service.grpc.pb.h"
#include "assay/v1/submission_service.grpc.pb.h"

#include "common/mutex.h"
#include "tests/support/temp_dir.h"

namespace assay::testing {

// Answers from its public fields; tests change them before the server is asked. What it has been
// asked to do it remembers.
class FakeCoordinator final : public v1::SubmissionService::Service,
                              public v1::AdminService::Service,
                              public v1::HistoryService::Service {
 public:
  // Two entries (e-1 valid, e-2 running), four runs, two nodes, a dataset, a token.
  FakeCoordinator();
  ~FakeCoordinator() override;

  // "unix:/..." once started.
  const std::string& socket_path() const { return socket_path_; }
  void Start();
  void Stop();
  // Gives every run a file.
  void AddArtifact(const std::string& name, const std::string& bytes);

  std::vector<v1::Submission> entries;  // newest first
  std::vector<v1::Run> runs;
  std::vector<v1::Worker> workers;
  std::vector<v1::Allocation> allocations;
  std::vector<v1::Dataset> datasets;
  std::vector<v1::Token> tokens;
  std::vector<v1::Finding> plan_findings;
  v1::ServerInfo info;  // besides version, principal and role, unless it says these
  v1::Diagnostics diagnostics;
  std::vector<v1::AuditEntry> audit;
  std::vector<v1::RunEvent> run_events;
  std::map<std::string, std::string> artifacts;  // bytes by digest
  // Ends the entry that is waited for when its events are watched.
  bool ends_when_watched = false;
  // The run event stream breaks after so many events, once.
  int break_after = -1;

  std::vector<std::string> request_ids;
  // An import as it has come: the pieces of its logs put together.
  struct ReceivedImport {
    v1::ImportHeader header;
    std::vector<v1::ImportedRun> runs;
    std::vector<std::string> logs;
  };
  std::vector<ReceivedImport> imports;
  std::vector<int64_t> resumed_after;  // after_seq of each WatchRunEvents

  grpc::Status CreateSubmission(grpc::ServerContext* context,
                                const v1::CreateSubmissionRequest* request,
                                v1::Submission* response) override;
  grpc::Status PlanSubmission(grpc::ServerContext* context,
                              const v1::PlanSubmissionRequest* request,
                              v1::PlanSubmissionResponse* response) override;
  grpc::Status GetSubmission(grpc::ServerContext* context, const v1::GetSubmissionRequest* request,
                             v1::Submission* response) override;
  grpc::Status ListSubmissions(grpc::ServerContext* context,
                               const v1::ListSubmissionsRequest* request,
                               v1::ListSubmissionsResponse* response) override;
  grpc::Status CancelSubmission(grpc::ServerContext* context,
                                const v1::CancelSubmissionRequest* request,
                                v1::Submission* response) override;
  grpc::Status WithdrawSubmission(grpc::ServerContext* context,
                                  const v1::WithdrawSubmissionRequest* request,
                                  v1::Submission* response) override;
  grpc::Status NoteSubmission(grpc::ServerContext* context,
                              const v1::NoteSubmissionRequest* request,
                              v1::Submission* response) override;
  grpc::Status ExplainSubmission(grpc::ServerContext* context,
                                 const v1::ExplainSubmissionRequest* request,
                                 v1::ExplainSubmissionResponse* response) override;
  grpc::Status GetRun(grpc::ServerContext* context, const v1::GetRunRequest* request,
                      v1::Run* response) override;
  grpc::Status ListRuns(grpc::ServerContext* context, const v1::ListRunsRequest* request,
                        v1::ListRunsResponse* response) override;
  grpc::Status WatchEvents(grpc::ServerContext* context, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::Event>* writer) override;
  grpc::Status WatchRunEvents(grpc::ServerContext* context,
                              const v1::WatchRunEventsRequest* request,
                              grpc::ServerWriter<v1::RunEvent>* writer) override;
  grpc::Status DownloadArtifact(grpc::ServerContext* context,
                                const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::ArtifactChunk>* writer) override;
  grpc::Status ImportSubmission(grpc::ServerContext* context,
                                grpc::ServerReader<v1::ImportSubmissionRequest>* reader,
                                v1::Submission* response) override;

  // The ids of entries, all on one page; by their texts alone.
  grpc::Status QueryResults(grpc::ServerContext* context, const v1::QueryResultsRequest* request,
                            v1::QueryResultsResponse* response) override;

  grpc::Status CreateToken(grpc::ServerContext* context, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override;
  grpc::Status ListTokens(grpc::ServerContext* context, const v1::ListTokensRequest* request,
                          v1::ListTokensResponse* response) override;
  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override;
  grpc::Status GetWorker(grpc::ServerContext* context, const v1::GetWorkerRequest* request,
                         v1::Worker* response) override;
  grpc::Status DrainWorker(grpc::ServerContext* context, const v1::DrainWorkerRequest* request,
                           v1::Worker* response) override;
  grpc::Status LabelWorker(grpc::ServerContext* context, const v1::LabelWorkerRequest* request,
                           v1::Worker* response) override;
  grpc::Status RevokeWorker(grpc::ServerContext* context, const v1::RevokeWorkerRequest* request,
                            v1::Worker* response) override;
  grpc::Status OrderCaches(grpc::ServerContext* context, const v1::OrderCachesRequest* request,
                           v1::OrderCachesResponse* response) override;
  grpc::Status ListAllocations(grpc::ServerContext* context,
                               const v1::ListAllocationsRequest* request,
                               v1::ListAllocationsResponse* response) override;
  grpc::Status GetAllocation(grpc::ServerContext* context, const v1::GetAllocationRequest* request,
                             v1::Allocation* response) override;
  grpc::Status RequestAllocation(grpc::ServerContext* context,
                                 const v1::RequestAllocationRequest* request,
                                 v1::Allocation* response) override;
  grpc::Status ReleaseAllocation(grpc::ServerContext* context,
                                 const v1::ReleaseAllocationRequest* request,
                                 v1::Allocation* response) override;
  grpc::Status ListDatasets(grpc::ServerContext* context, const v1::ListDatasetsRequest* request,
                            v1::ListDatasetsResponse* response) override;
  grpc::Status ListRounds(grpc::ServerContext* context, const v1::ListRoundsRequest* request,
                          v1::ListRoundsResponse* response) override;
  grpc::Status GetDiagnostics(grpc::ServerContext* context,
                              const v1::GetDiagnosticsRequest* request,
                              v1::Diagnostics* response) override;
  grpc::Status ListAudit(grpc::ServerContext* context, const v1::ListAuditRequest* request,
                         v1::ListAuditResponse* response) override;
  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::ServerInfo* response) override;

 private:
  v1::Submission* FindEntry(const std::string& name);

  Mutex mutex_;  // the server's threads take turns
  CondVar changed_;
  bool is_stopping_ = false;
  TempDir directory_;
  std::string socket_path_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace assay::testing

#endif  // TESTS_CLI_FAKE_COORDINATOR_H_
