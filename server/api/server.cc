#include "server/api/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "server/api/admin_service.h"
#include "server/api/certificate_desk.h"
#include "server/api/history_service.h"
#include "server/api/limits.h"
#include "server/api/submission_service.h"
#include "server/api/worker_service.h"

namespace assay::api {
namespace {

// What all calls together may hold in gRPC's buffers: four hundred of the largest messages.
constexpr size_t kBufferBytesMax = size_t{512} << 20;
// Of one connection; an agent has three, a person one.
constexpr int kStreamsMax = 100;
// Clients ping every 15 s (common/rpc/channel.cc); that leaves room for jitter.
constexpr int kPingIntervalMinMs = 10'000;
// A client whose host vanished is noticed within 40 s, and its stream closed.
constexpr int kKeepaliveTimeMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;

void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMessageBytesMax);
  builder->SetResourceQuota(grpc::ResourceQuota("assayd").Resize(kBufferBytesMax));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kPingIntervalMinMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
}

Backend WithGuard(Backend backend, const Guard* guard) {
  backend.guard = guard;
  return backend;
}

}  // namespace

struct Server::Services {
  explicit Services(const Backend* backend)
      : submission(backend),
        worker(backend),
        enrolment(backend),
        admin(backend),
        history(backend) {}
  SubmissionService submission;
  WorkerService worker;
  EnrolmentService enrolment;
  AdminService admin;
  HistoryService history;
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
    : connections_(gate::ConnectionTable::DefaultRange()),
      guard_(backend.clock, authenticator, &connections_, backend.tokens, backend.certificates),
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
  builder.experimental().SetInterceptorCreators(CallEndInterceptors(options.on_call_end));
  builder.RegisterService(&services_->submission);
  builder.RegisterService(&services_->worker);
  builder.RegisterService(&services_->enrolment);
  builder.RegisterService(&services_->admin);
  builder.RegisterService(&services_->history);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC does not start");
  gate::Gate::Options gate = {
      .tcp_address = options.tcp_address,
      .ca_pem = options.ca_pem,
      .server_certificate = options.server_certificate,
      .unix_socket_path = options.unix_socket_path,
      .unix_socket_mode = options.is_socket_open_to_all ? 0666 : 0600,
      .connections = &connections_,
      .identify =
          [this](const auth::Evidence& evidence) { return guard_.FromConnection(evidence); },
      .on_connection = [server =
                            server_.get()](int fd) { grpc::AddInsecureChannelFromFd(server, fd); },
      .on_refusal =
          [this](const std::string& peer, const absl::Status& reason) {
            backend_.refusals->Note(peer, "connection", reason);
          },
      // A little more than gRPC takes, so that who is just over the limit is told by name.
      .message_bytes_max = kMessageBytesMax + (64 << 10),
      .on_question =
          [this](const gate::Question& question, gate::OnAnswer on_answer) {
            AnswerQuestion(&backend_, question, std::move(on_answer));
          }};
  ASSIGN_OR_RETURN(gate_, gate::Gate::Start(std::move(gate)));
  tcp_address_ = gate_->tcp_address();
  return absl::OkStatus();
}

void Server::Shutdown(absl::Duration grace) {
  if (gate_ != nullptr) gate_->StopListening();
  if (server_ == nullptr) return;
  // Without a deadline this would wait for streams that never end.
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  server_->Wait();
  server_.reset();
  gate_.reset();  // what was answered last is on its way through it
}

}  // namespace assay::api
