#include "cli/client.h"

#include <cstring>
#include <istream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "cli/stubs.h"
#include "common/file.h"
#include "common/rpc/channel.h"
#include "common/rpc/status_grpc.h"
#include "common/status.h"

namespace assay::cli {
namespace {

constexpr int64_t kTokenBytesMax = 4096;  // ours have 38
constexpr char kStandardInput[] = "-";

absl::StatusOr<std::string> ReadToken(const Environment& env, const std::string& path) {
  if (path != kStandardInput) return ReadFile(env.AbsolutePath(path), kTokenBytesMax);
  std::string token(kTokenBytesMax, '\0');
  env.in->getline(token.data(), kTokenBytesMax);
  token.resize(std::strlen(token.c_str()));
  return token;
}

absl::Status AddCredentials(const Environment& env, const Config& config, Endpoint* endpoint) {
  if (const auto ca = config.Find("ca"); ca.has_value()) {
    absl::StatusOr<std::string> pem = ReadFile(env.AbsolutePath(ca->value));
    if (!pem.ok())
      return absl::InvalidArgumentError(absl::StrCat("cannot read the CA certificate named by ",
                                                     ca->origin, ": ",
                                                     std::string(pem.status().message())));
    endpoint->ca_pem = *std::move(pem);
  }
  const auto token = config.Find("token");
  const auto file = config.Find("token_file");
  if (token.has_value() && (!file.has_value() || token->level <= file->level)) {
    endpoint->token = token->value;
  } else if (file.has_value()) {
    absl::StatusOr<std::string> text = ReadToken(env, file->value);
    if (!text.ok())
      return absl::InvalidArgumentError(absl::StrCat("cannot read the token file named by ",
                                                     file->origin, ": ",
                                                     std::string(text.status().message())));
    endpoint->token = std::string(absl::StripAsciiWhitespace(*text));
  }
  return absl::OkStatus();
}

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

absl::StatusOr<Endpoint> ResolveEndpoint(const Environment& environment, const Config& config) {
  Endpoint endpoint;
  const auto server = config.Find("server");
  const auto socket = config.Find("socket");
  if (server.has_value() && socket.has_value() && server->level == socket->level)
    return absl::InvalidArgumentError(absl::StrCat(server->origin, " and ", socket->origin,
                                                   " both say where the coordinator is: give one"));
  if (server.has_value() && (!socket.has_value() || server->level < socket->level)) {
    endpoint.target = server->value;
    RETURN_IF_ERROR(AddCredentials(environment, config, &endpoint));
    return endpoint;
  }
  if (socket.has_value()) {
    endpoint.target = absl::StrCat("unix:", environment.AbsolutePath(socket->value));
    RETURN_IF_ERROR(AddCredentials(environment, config, &endpoint));
    return endpoint;
  }
  const std::string dev = JoinPath(environment.RuntimeDirectory(), "assayd.sock");
  for (const std::string& path : {dev, environment.system_socket_path}) {
    if (!FileExists(path)) continue;
    endpoint.target = absl::StrCat("unix:", path);
    return endpoint;
  }
  return absl::UnavailableError(
      "no coordinator is known and none runs on this host; start a private one with 'assay dev', "
      "or name one with --server HOST:PORT --ca FILE (see 'assay help environment')");
}

Client::Client(Endpoint endpoint, std::unique_ptr<Stubs> stubs)
    : endpoint_(std::move(endpoint)), stubs_(std::move(stubs)) {}

Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const Endpoint& endpoint) {
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, MakeChannel(endpoint));
  auto stubs = std::make_unique<Stubs>();
  stubs->channel = channel;
  stubs->submissions = v1::SubmissionService::NewStub(channel);
  stubs->admin = v1::AdminService::NewStub(channel);
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
absl::StatusOr<v1::Worker> Client::Call(const v1::RevokeWorkerRequest& request,
                                        absl::Duration timeout) const {
  return Send(*this, stubs_->admin, &v1::AdminService::Stub::RevokeWorker, request, timeout);
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

bool Client::WaitUntilReachable(absl::Time deadline) const {
  return stubs_->channel->WaitForConnected(absl::ToChronoTime(deadline));
}

absl::Status Client::Explain(const absl::Status& status) const {
  return cli::Explain(endpoint_, status);
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

}  // namespace assay::cli
