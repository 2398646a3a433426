#include "cli/client.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::cli {
namespace {

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
    absl::StatusOr<std::string> text = ReadFile(env.AbsolutePath(file->value));
    if (!text.ok())
      return absl::InvalidArgumentError(absl::StrCat("cannot read the token file named by ",
                                                     file->origin, ": ",
                                                     std::string(text.status().message())));
    endpoint->token = std::string(absl::StripAsciiWhitespace(*text));
  }
  return absl::OkStatus();
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

Client::Client(Endpoint endpoint, std::shared_ptr<grpc::Channel> channel)
    : endpoint_(std::move(endpoint)),
      channel_(std::move(channel)),
      submissions_(v1::SubmissionService::NewStub(channel_)),
      admin_(v1::AdminService::NewStub(channel_)) {}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const Endpoint& endpoint) {
  ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeChannel(endpoint));
  return std::unique_ptr<Client>(new Client(endpoint, std::move(channel)));
}

bool Client::WaitUntilReachable(absl::Time deadline) const {
  return channel_->WaitForConnected(absl::ToChronoTime(deadline));
}

absl::Status Client::Explain(const absl::Status& status) const {
  if (absl::IsUnavailable(status)) {
    return absl::UnavailableError(
        absl::StrCat("the coordinator at ", endpoint_.target, " does not answer (",
                     std::string(status.message()),
                     "); is assayd running there? 'assay doctor' checks the connection"));
  }
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(
        absl::StrCat("the coordinator at ", endpoint_.target, " did not answer in time"));
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
