#include "server/api/server.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "server/api/admin_service.h"
#include "server/api/submission_service.h"
#include "server/api/worker_service.h"

namespace assay::api {
namespace {

// The largest message is an imported entry with its logs: 161 MB in round v1.0, the 256 models of
// one weak set. Nothing else comes near (common/rpc/channel.cc has the limit of replies).
constexpr int kMessageBytesMax = 192 << 20;
// Clients ping every 20 s (common/rpc/channel.cc); half of that leaves room for jitter.
constexpr int kPingIntervalMinMs = 10'000;
// A client whose host vanished is noticed within 40 s, and its stream closed.
constexpr int kKeepaliveTimeMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;

std::shared_ptr<grpc::ServerCredentials> TlsCredentials(const ListenOptions& options) {
  // Without a certificate one may connect: people have tokens, and a new worker has neither. One
  // that is shown must be of our CA.
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = options.ca_pem;
  tls.pem_key_cert_pairs.push_back(
      {options.server_certificate.key_pem, options.server_certificate.certificate_pem});
  return grpc::SslServerCredentials(tls);
}

void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMessageBytesMax);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kPingIntervalMinMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  // Two daemons on one port would share its connections without a word.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

Backend WithGuard(Backend backend, const Guard* guard) {
  backend.guard = guard;
  return backend;
}

}  // namespace

struct Server::Services {
  explicit Services(const Backend* backend)
      : submission(backend), worker(backend), enrolment(backend), admin(backend) {}
  SubmissionService submission;
  WorkerService worker;
  EnrolmentService enrolment;
  AdminService admin;
};

absl::Status CheckListenOptions(const ListenOptions& options) {
  if (options.tcp_address.empty() && options.unix_socket_path.empty()) {
    return absl::FailedPreconditionError(
        "nothing to listen on: set listen_address, unix_socket_path or both");
  }
  if (options.tcp_address.empty()) return absl::OkStatus();
  if (options.ca_pem.empty() || options.server_certificate.key_pem.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "listen_address ", options.tcp_address,
        " needs tls { ca_certificate_path, certificate_path, key_path }: plain TCP is not spoken, "
        "also not on loopback; run assay admin init, or use unix_socket_path alone"));
  }
  RETURN_IF_ERROR(Annotate(CheckPair(options.server_certificate), "tls.certificate_path"));
  return absl::OkStatus();
}

Server::Server(Backend backend, const auth::Authenticator* authenticator)
    : peers_(auth::PeerTable::DefaultRange()),
      guard_(backend.clock, authenticator, &peers_, backend.tokens, backend.certificates),
      backend_(WithGuard(std::move(backend), &guard_)),
      services_(std::make_unique<Services>(&backend_)) {}

Server::~Server() {
  Shutdown(absl::ZeroDuration());
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ListenOptions options,
                                                      const auth::Authenticator* authenticator,
                                                      Backend backend) {
  RETURN_IF_ERROR(CheckListenOptions(options));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  std::unique_ptr<Server> server(new Server(std::move(backend), authenticator));
  RETURN_IF_ERROR(server->Listen(options));
  return server;
}

absl::Status Server::Listen(const ListenOptions& options) {
  grpc::ServerBuilder builder;
  SetLimits(&builder);
  builder.RegisterService(&services_->submission);
  builder.RegisterService(&services_->worker);
  builder.RegisterService(&services_->enrolment);
  builder.RegisterService(&services_->admin);
  int port = 0;
  if (!options.tcp_address.empty())
    builder.AddListeningPort(options.tcp_address, TlsCredentials(options), &port);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || (!options.tcp_address.empty() && port == 0)) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", options.tcp_address,
        ": the port is taken, or the host is not this one, or a certificate is unreadable"));
  }
  if (!options.tcp_address.empty()) {
    const std::string host = options.tcp_address.substr(0, options.tcp_address.rfind(':'));
    tcp_address_ = absl::StrCat(host, ":", port);
  }
  if (options.unix_socket_path.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(unix_listener_,
                   auth::UnixListener::Start({.path = options.unix_socket_path,
                                              .mode = options.is_socket_open_to_all ? 0666 : 0600,
                                              .peers = &peers_,
                                              .on_connection = [server = server_.get()](int fd) {
                                                grpc::AddInsecureChannelFromFd(server, fd);
                                              }}));
  return absl::OkStatus();
}

void Server::Shutdown(absl::Duration grace) {
  unix_listener_.reset();
  if (server_ == nullptr) return;
  // Without a deadline this would wait for streams that never end.
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  server_->Wait();
  server_.reset();
}

}  // namespace assay::api
