#include "server/api/worker_service.h"

#include <optional>
#include <string>
#include <utility>

#include "common/process.h"
#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/convert_worker.h"
#include "server/api/enrolment.h"
#include "server/api/event_stream.h"
#include "server/api/pull_stream.h"
#include "server/api/source_streams.h"
#include "server/api/stored_engines.h"
#include "server/api/upload.h"
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

absl::StatusOr<core::Command> ReadSynchronize(const auth::Identity& identity,
                                              const v1::SynchronizeRequest& request) {
  ASSIGN_OR_RETURN(core::Synchronize command, FromProto(request));
  RETURN_IF_ERROR(auth::CheckWorker(identity, command.worker));
  command.certificate_end_us = identity.certificate_end_us;
  return CommandOf(identity, std::move(command));
}

// When a call came, or its reply left.
struct Moment {
  explicit Moment(const Clock& clock)
      : wall_us(absl::ToUnixMicros(clock.Wall())), mono_us(clock.Mono().ns / 1000) {}
  int64_t wall_us;
  int64_t mono_us;
};

v1::SynchronizeResponse ToResponse(const core::SynchronizeReply& reply, bool is_polling,
                                   const Moment& receive, const Moment& send) {
  static const auto* const kBootId = new std::string(BootId());
  v1::SynchronizeResponse response;
  *response.mutable_desired() = ToProto(reply.desired);
  response.set_receive_wall_us(receive.wall_us);
  response.set_send_wall_us(send.wall_us);
  response.set_receive_mono_us(receive.mono_us);
  response.set_send_mono_us(send.mono_us);
  response.set_boot_id(*kBootId);
  const absl::Duration delay = !reply.is_satisfied ? kUnsatisfiedDelay
                               : is_polling        ? absl::ZeroDuration()
                                                   : kHeartbeatDelay;
  response.mutable_next_delay()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(delay % absl::Seconds(1))));
  response.mutable_next_delay()->set_seconds(absl::ToInt64Seconds(delay));
  return response;
}

}  // namespace

grpc::ServerUnaryReactor* WorkerService::Synchronize(grpc::CallbackServerContext* context,
                                                     const v1::SynchronizeRequest* request,
                                                     v1::SynchronizeResponse* response) {
  const auto call = StartUnary(context, response);
  const Moment receive(*backend_->clock);
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
      *std::move(command),
      [this, call, is_polling, receive](absl::StatusOr<core::Reply> reply) {
        if (!reply.ok()) return call.Finish(reply.status());
        auto told = Expect<core::SynchronizeReply>(*std::move(reply));
        // A worker that executes the run has them.
        std::optional<core::ArtifactRef> stored;
        if (!told.is_satisfied && told.desired.order) stored = told.desired.order->engines;
        const core::RunId run = told.desired.run;
        WithStoredEngines(
            backend_, run, stored,
            [this, call, told = std::move(told), is_polling, receive](std::string engines) {
              v1::SynchronizeResponse answer =
                  ToResponse(told, is_polling, receive, Moment(*backend_->clock));
              if (!engines.empty())
                answer.mutable_desired()->mutable_spec()->set_engine_choices(std::move(engines));
              call.Finish(std::move(answer));
            });
      },
      [context] { return !context->IsCancelled(); });  // until Finish it lives
  return call.reactor;
}

grpc::ServerBidiReactor<v1::EventBatch, v1::EventAck>* WorkerService::StreamEvents(
    grpc::CallbackServerContext* context) {
  return new EventStream(backend_, Admit(*backend_, *context, kStreamEvents));
}

grpc::ServerReadReactor<v1::UploadArtifactRequest>* WorkerService::UploadArtifact(
    grpc::CallbackServerContext* context, v1::UploadArtifactResponse* response) {
  return new Upload(backend_, Admit(*backend_, *context, kUploadArtifact), response);
}

grpc::ServerWriteReactor<v1::ArtifactChunk>* WorkerService::DownloadSource(
    grpc::CallbackServerContext* context, const v1::DownloadSourceRequest* request) {
  const absl::StatusOr<auth::Identity> identity =
      Admit(*backend_, *context, kDownloadSource, *request);
  if (!identity.ok()) return new RefusedStream<v1::ArtifactChunk>(identity.status());
  return NewSourceDownload(backend_, *identity, *request);
}

grpc::ServerUnaryReactor* EnrolmentService::Enrol(grpc::CallbackServerContext* context,
                                                  const v1::EnrolRequest* request,
                                                  v1::EnrolResponse* response) {
  const auto call = StartUnary(context, response);
  const absl::StatusOr<auth::Identity> identity = Admit(*backend_, *context, kEnrol, *request);
  if (!identity.ok()) {
    call.Finish(identity.status());
    return call.reactor;
  }
  CertifyWorker(
      backend_, *identity,
      {.worker = request->worker(), .csr_pem = request->csr_pem(), .token = request->token()},
      [this, call](absl::StatusOr<std::string> certificate) {
        if (!certificate.ok()) return call.Finish(certificate.status());
        call.response->set_certificate_pem(*std::move(certificate));
        call.response->set_ca_pem(backend_->ca.certificate_pem);
        call.Finish(absl::OkStatus());
      });
  return call.reactor;
}

}  // namespace assay::api
