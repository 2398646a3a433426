#include "server/api/worker_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/pki.h"
#include "common/secret.h"
#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/convert_worker.h"
#include "server/api/event_stream.h"
#include "server/api/upload.h"
#include "server/auth/certificate_generation.h"
#include "server/auth/permissions.h"

namespace assay::api {
namespace {

constexpr absl::string_view kSynchronize = "assay.v1.WorkerService/Synchronize";
constexpr absl::string_view kStreamEvents = "assay.v1.WorkerService/StreamEvents";
constexpr absl::string_view kUploadArtifact = "assay.v1.WorkerService/UploadArtifact";
constexpr absl::string_view kEnrol = "assay.v1.EnrolmentService/Enrol";

// A worker that does not yet do what it should is busy getting there; it calls by itself when it
// has. This is only for the case that it does not.
constexpr absl::Duration kUnsatisfiedDelay = absl::Milliseconds(500);
// A worker that does what it should and did not ask to wait: its heartbeat.
constexpr absl::Duration kHeartbeatDelay = absl::Seconds(2);
// A year, so that an agent which renews two months before the end has time to find us.
constexpr absl::Duration kCertificateLifetime = absl::Hours(24 * 366);

absl::StatusOr<core::Command> ReadSynchronize(const auth::Identity& identity,
                                              const v1::SynchronizeRequest& request) {
  ASSIGN_OR_RETURN(core::Synchronize command, FromProto(request));
  RETURN_IF_ERROR(auth::CheckWorker(identity, command.worker));
  return core::Command{.principal = identity.principal,
                       .body = std::move(command),
                       .certificate_generation = identity.certificate_generation};
}

v1::SynchronizeResponse ToResponse(const core::SynchronizeReply& reply, bool is_polling,
                                   int64_t receive_us, int64_t send_us) {
  v1::SynchronizeResponse response;
  *response.mutable_desired() = ToProto(reply.desired);
  response.set_receive_wall_us(receive_us);
  response.set_send_wall_us(send_us);
  const absl::Duration delay = !reply.is_satisfied ? kUnsatisfiedDelay
                               : is_polling        ? absl::ZeroDuration()
                                                   : kHeartbeatDelay;
  response.mutable_next_delay()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(delay % absl::Seconds(1))));
  response.mutable_next_delay()->set_seconds(absl::ToInt64Seconds(delay));
  return response;
}

// Cheap refusals of an enrolment, before anything is signed. The core decides when it redeems.
absl::Status CheckEnrol(const Backend& backend, const auth::Identity& identity,
                        const v1::EnrolRequest& request) {
  if (backend.ca.key_pem.empty()) {
    return absl::FailedPreconditionError(
        "enrolment is off: give the coordinator tls.ca_key_path, or sign the CSR by hand");
  }
  RETURN_IF_ERROR(core::CheckName("worker", request.worker()));
  if (request.token().empty()) {
    if (identity.role == auth::Role::kWorker) return auth::CheckWorker(identity, request.worker());
    return absl::PermissionDeniedError(
        "no enrolment token: ask an operator for one (assay admin enrol)");
  }
  const std::optional<core::Token> token = backend.tokens->Find(TokenHash(request.token()));
  const bool is_usable = token.has_value() && token->kind == core::TokenKind::kEnrol &&
                         !token->is_revoked &&
                         token->expires_at_us > absl::ToUnixMicros(backend.clock->Wall());
  if (is_usable) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "the enrolment token is unknown, used or expired: ask an operator for a new one");
}

// What a renewal gives is revoked with the certificate that it stands on. A token gives the present
// generation: were that to end before the token is redeemed, the token would end with it.
absl::StatusOr<v1::EnrolResponse> Certify(const Backend& backend, const auth::Identity& identity,
                                          const v1::EnrolRequest& request) {
  const int64_t generation = request.token().empty()
                                 ? identity.certificate_generation
                                 : backend.certificates->ValidFrom(request.worker());
  std::vector<std::string> uris;
  if (generation > 0) uris.push_back(auth::GenerationUri(generation));
  const CertificateRequest wanted = {
      .common_name = request.worker(),
      .uris = std::move(uris),
      .kind = CertificateKind::kClient,
      .validity = {.now = backend.clock->Wall(), .lifetime = kCertificateLifetime}};
  v1::EnrolResponse response;
  ASSIGN_OR_RETURN(*response.mutable_certificate_pem(),
                   SignCsr(backend.ca, request.csr_pem(), wanted));
  response.set_ca_pem(backend.ca.certificate_pem);
  return response;
}

}  // namespace

grpc::ServerUnaryReactor* WorkerService::Synchronize(grpc::CallbackServerContext* context,
                                                     const v1::SynchronizeRequest* request,
                                                     v1::SynchronizeResponse* response) {
  const auto call = StartUnary(context, response);
  const int64_t receive_us = absl::ToUnixMicros(backend_->clock->Wall());
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kSynchronize, *request);
  absl::StatusOr<core::Command> command =
      Then(identity, [&](const auth::Identity& who) { return ReadSynchronize(who, *request); });
  if (!command.ok()) {
    call.Finish(command.status());
    return call.reactor;
  }
  const bool is_polling = std::get<core::Synchronize>(command->body).poll_timeout_us > 0;
  backend_->core->Post(
      *std::move(command), [this, call, is_polling, receive_us](absl::StatusOr<core::Reply> reply) {
        if (!reply.ok()) return call.Finish(reply.status());
        call.Finish(ToResponse(Expect<core::SynchronizeReply>(*std::move(reply)), is_polling,
                               receive_us, absl::ToUnixMicros(backend_->clock->Wall())));
      });
  return call.reactor;
}

grpc::ServerBidiReactor<v1::EventBatch, v1::EventAck>* WorkerService::StreamEvents(
    grpc::CallbackServerContext* context) {
  return new EventStream(backend_, backend_->guard->Admit(*context, kStreamEvents));
}

grpc::ServerReadReactor<v1::UploadArtifactRequest>* WorkerService::UploadArtifact(
    grpc::CallbackServerContext* context, v1::UploadArtifactResponse* response) {
  return new Upload(backend_, backend_->guard->Admit(*context, kUploadArtifact), response);
}

grpc::ServerUnaryReactor* EnrolmentService::Enrol(grpc::CallbackServerContext* context,
                                                  const v1::EnrolRequest* request,
                                                  v1::EnrolResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kEnrol, *request);
  // Signed before the token is redeemed: a CSR that cannot be signed must not use it up.
  absl::StatusOr<v1::EnrolResponse> certified =
      Then(identity, [&](const auth::Identity& who) -> absl::StatusOr<v1::EnrolResponse> {
        RETURN_IF_ERROR(CheckEnrol(*backend_, who, *request));
        return Certify(*backend_, who, *request);
      });
  if (!certified.ok() || request->token().empty()) {
    call.Finish(std::move(certified));
    return call.reactor;
  }
  core::Command command = {
      .principal = request->worker(),
      .body = core::RedeemEnrolment{.secret_sha256 = TokenHash(request->token()),
                                    .worker = request->worker()}};
  backend_->core->Post(std::move(command), [call, certified = *std::move(certified)](
                                               absl::StatusOr<core::Reply> reply) {
    if (!reply.ok()) return call.Finish(reply.status());
    call.Finish(certified);
  });
  return call.reactor;
}

}  // namespace assay::api
