#include "common/client/client.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/client/stubs.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/status.h"

namespace assay::client {
namespace {

template <class Service, class Request, class Response>
absl::StatusOr<Response> Send(const Client& client, const std::unique_ptr<Service>& stub,
                              grpc::Status (Service::*method)(grpc::ClientContext*, const Request&,
                                                              Response*),
                              const Request& request, absl::Duration timeout) {
  grpc::ClientContext context;
  PrepareCall(client.endpoint(), timeout, &context);
  Response response;
  const grpc::Status status = ((*stub).*method)(&context, request, &response);
  if (!status.ok()) return client.Explain(FromGrpc(status));
  return response;
}

}  // namespace

Client::Client(Endpoint endpoint, std::unique_ptr<Stubs> stubs)
    : endpoint_(std::move(endpoint)), stubs_(std::move(stubs)) {}

Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const Endpoint& endpoint) {
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, MakeChannel(endpoint));
  auto stubs = std::make_unique<Stubs>();
  stubs->channel = channel;
  stubs->submissions = v1::SubmissionService::NewStub(channel);
  stubs->admin = v1::AdminService::NewStub(channel);
  stubs->history = v1::HistoryService::NewStub(channel);
  return std::unique_ptr<Client>(new Client(endpoint, std::move(stubs)));
}

absl::StatusOr<v1::CreateTokenResponse> Client::Call(const v1::CreateTokenRequest& request,
                                                     absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::CreateToken, request, timeout);
}
absl::StatusOr<v1::ListTokensResponse> Client::Call(const v1::ListTokensRequest& request,
                                                    absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::ListTokens, request, timeout);
}
absl::StatusOr<v1::Token> Client::Call(const v1::RevokeTokenRequest& request,
                                       absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::RevokeToken, request, timeout);
}
absl::StatusOr<v1::CreateWebCodeResponse> Client::Call(const v1::CreateWebCodeRequest& request,
                                                       absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::CreateWebCode, request, timeout);
}
absl::StatusOr<v1::CreateTokenResponse> Client::Call(const v1::RedeemWebCodeRequest& request,
                                                     absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::RedeemWebCode, request, timeout);
}
absl::StatusOr<v1::ListWorkersResponse> Client::Call(const v1::ListWorkersRequest& request,
                                                     absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::ListWorkers, request, timeout);
}
absl::StatusOr<v1::Worker> Client::Call(const v1::GetWorkerRequest& request,
                                        absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::GetWorker, request, timeout);
}
absl::StatusOr<v1::Worker> Client::Call(const v1::DrainWorkerRequest& request,
                                        absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::DrainWorker, request, timeout);
}
absl::StatusOr<v1::Worker> Client::Call(const v1::ResumeWorkerRequest& request,
                                        absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::ResumeWorker, request, timeout);
}
absl::StatusOr<v1::Worker> Client::Call(const v1::LabelWorkerRequest& request,
                                        absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::LabelWorker, request, timeout);
}

absl::StatusOr<v1::Worker> Client::Call(const v1::RevokeWorkerRequest& request,
                                        absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::RevokeWorker, request, timeout);
}
absl::StatusOr<v1::OrderCachesResponse> Client::Call(const v1::OrderCachesRequest& request,
                                                     absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::OrderCaches, request, timeout);
}
absl::StatusOr<v1::ListAllocationsResponse> Client::Call(const v1::ListAllocationsRequest& request,
                                                         absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::ListAllocations, request, timeout);
}
absl::StatusOr<v1::Allocation> Client::Call(const v1::GetAllocationRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::GetAllocation, request, timeout);
}
absl::StatusOr<v1::Allocation> Client::Call(const v1::RequestAllocationRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::RequestAllocation, request, timeout);
}
absl::StatusOr<v1::Allocation> Client::Call(const v1::ReleaseAllocationRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::ReleaseAllocation, request, timeout);
}
absl::StatusOr<v1::Dataset> Client::Call(const v1::AddDatasetRequest& request,
                                         absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::AddDataset, request, timeout);
}
absl::StatusOr<v1::ListDatasetsResponse> Client::Call(const v1::ListDatasetsRequest& request,
                                                      absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::ListDatasets, request, timeout);
}
absl::StatusOr<v1::Dataset> Client::Call(const v1::RemoveDatasetRequest& request,
                                         absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::RemoveDataset, request, timeout);
}
absl::StatusOr<v1::ListRoundsResponse> Client::Call(const v1::ListRoundsRequest& request,
                                                    absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::ListRounds, request, timeout);
}
absl::StatusOr<v1::ServerInfo> Client::Call(const v1::GetServerInfoRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::GetServerInfo, request, timeout);
}
absl::StatusOr<v1::StoreUsage> Client::Call(const v1::GetUsageRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::GetUsage, request, timeout);
}
absl::StatusOr<v1::Diagnostics> Client::Call(const v1::GetDiagnosticsRequest& request,
                                             absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::GetDiagnostics, request, timeout);
}
absl::StatusOr<v1::ListAuditResponse> Client::Call(const v1::ListAuditRequest& request,
                                                   absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::ListAudit, request, timeout);
}
absl::StatusOr<v1::Submission> Client::Call(const v1::CreateSubmissionRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::CreateSubmission, request,
              timeout);
}
absl::StatusOr<v1::PlanSubmissionResponse> Client::Call(const v1::PlanSubmissionRequest& request,
                                                        absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::PlanSubmission, request,
              timeout);
}
absl::StatusOr<v1::Submission> Client::Call(const v1::GetSubmissionRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::GetSubmission, request,
              timeout);
}
absl::StatusOr<v1::ListSubmissionsResponse> Client::Call(const v1::ListSubmissionsRequest& request,
                                                         absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::ListSubmissions, request,
              timeout);
}
absl::StatusOr<v1::Submission> Client::Call(const v1::CancelSubmissionRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::CancelSubmission, request,
              timeout);
}
absl::StatusOr<v1::Submission> Client::Call(const v1::WithdrawSubmissionRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::WithdrawSubmission, request,
              timeout);
}

absl::StatusOr<v1::Submission> Client::Call(const v1::PublishSubmissionRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::PublishSubmission, request,
              timeout);
}
absl::StatusOr<v1::Submission> Client::Call(const v1::NoteSubmissionRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::NoteSubmission, request,
              timeout);
}
absl::StatusOr<v1::Submission> Client::Call(const v1::PruneInstancesRequest& request,
                                            absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::PruneInstances, request,
              timeout);
}
absl::StatusOr<v1::JoinAllocationResponse> Client::Call(const v1::JoinAllocationRequest& request,
                                                        absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::JoinAllocation, request,
              timeout);
}
absl::StatusOr<v1::ExplainSubmissionResponse> Client::Call(
    const v1::ExplainSubmissionRequest& request, absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::ExplainSubmission, request,
              timeout);
}
absl::StatusOr<v1::Run> Client::Call(const v1::GetRunRequest& request,
                                     absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::GetRun, request, timeout);
}
absl::StatusOr<v1::ListRunsResponse> Client::Call(const v1::ListRunsRequest& request,
                                                  absl::Duration timeout) const {
  return Send(*this, stubs_->submissions, &v1::SubmissionService::Stub::ListRuns, request, timeout);
}

absl::StatusOr<v1::QueryResultsResponse> Client::Call(const v1::QueryResultsRequest& request,
                                                      absl::Duration timeout) const {
  return Send(*this, stubs_->history, &v1::HistoryService::Stub::QueryResults, request, timeout);
}

absl::StatusOr<v1::View> Client::Call(const v1::SaveViewRequest& request,
                                      absl::Duration timeout) const {
  return Send(*this, stubs_->history, &v1::HistoryService::Stub::SaveView, request, timeout);
}

absl::StatusOr<v1::ListViewsResponse> Client::Call(const v1::ListViewsRequest& request,
                                                   absl::Duration timeout) const {
  return Send(*this, stubs_->history, &v1::HistoryService::Stub::ListViews, request, timeout);
}

absl::StatusOr<v1::View> Client::Call(const v1::RemoveViewRequest& request,
                                      absl::Duration timeout) const {
  return Send(*this, stubs_->history, &v1::HistoryService::Stub::RemoveView, request, timeout);
}

bool Client::WaitUntilReachable(absl::Time deadline) const {
  return stubs_->channel->WaitForConnected(absl::ToChronoTime(deadline));
}

absl::Status Client::Explain(const absl::Status& status) const {
  return client::Explain(endpoint_, status);
}

absl::Status Explain(const Endpoint& endpoint, const absl::Status& status) {
  if (absl::IsUnavailable(status)) {
    return absl::UnavailableError(absl::StrCat(
        "the coordinator at ", endpoint.target, " does not answer (", std::string(status.message()),
        "); is assayd running there? 'assay doctor' checks the connection"));
  }
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the coordinator at ", endpoint.target, " did not answer in time"));
  }
  if (absl::IsUnauthenticated(status)) {
    return absl::UnauthenticatedError(
        absl::StrCat(std::string(status.message()),
                     "; give a token with ASSAY_TOKEN or token_file, made by an operator with "
                     "'assay admin token create'"));
  }
  return status;
}

}  // namespace assay::client
