#include "server/api/upload.h"

#include <utility>

#include "server/api/convert.h"
#include "server/api/names.h"

namespace assay::api {

Upload::Upload(const Backend* backend, const absl::StatusOr<auth::Identity>& admission,
               v1::UploadArtifactResponse* response)
    : PieceStream(backend->silences),
      backend_(backend),
      worker_(admission.ok() ? admission->principal : ""),
      certificate_generation_(admission.ok() ? admission->certificate_generation : 0),
      response_(response) {
  admission.ok() ? Next() : End(admission.status());
}

void Upload::Take(v1::UploadArtifactRequest* message) {
  if (record_.has_value() == message->has_header()) {
    return End(absl::InvalidArgumentError(
        record_.has_value() ? "a second header: send it in the first message only"
                            : "the first message has no header: send run and digest first"));
  }
  std::string data = std::move(*message->mutable_data());
  if (message->has_header()) return Begin(message->header(), std::move(data));
  Append(std::move(data));
}

void Upload::Begin(const v1::UploadHeader& header, std::string data) {
  const absl::StatusOr<core::RunId> run = ParseRunName(header.run());
  if (!run.ok()) return End(run.status());
  record_ = core::RecordArtifact{.run = *run,
                                 .generation = header.generation(),
                                 .artifact = {.file_name = header.file_name(),
                                              .sha256 = header.sha256(),
                                              .size_bytes = header.size_bytes()},
                                 .worker = worker_};
  backend_->core->Post(ToCommand(core::AuthorizeUpload{*record_}),
                       [this, data = std::move(data)](absl::StatusOr<core::Reply> reply) mutable {
                         if (!reply.ok()) return End(reply.status());
                         backend_->uploads->Begin(
                             record_->artifact,
                             [this, data = std::move(data)](
                                 absl::StatusOr<runtime::Uploads::Ticket> ticket) mutable {
                               if (!ticket.ok()) return End(ticket.status());
                               ticket_ = *ticket;
                               Append(std::move(data));
                             });
                       });
}

void Upload::Append(std::string data) {
  if (data.empty()) return Next();
  backend_->uploads->Append(*ticket_, std::move(data), [this](const absl::Status& status) {
    status.ok() ? Next() : End(status);
  });
}

void Upload::Complete() {
  if (!ticket_.has_value())
    return End(absl::InvalidArgumentError("an upload without a message: send a header"));
  backend_->uploads->Finish(*ticket_, [this](absl::StatusOr<core::ArtifactRef> filed) {
    filed.ok() ? Record(*std::move(filed)) : End(filed.status());
  });
}

void Upload::Record(core::ArtifactRef artifact) {
  record_->artifact = std::move(artifact);
  backend_->core->Post(ToCommand(*std::move(record_)), [this](absl::StatusOr<core::Reply> reply) {
    if (!reply.ok()) return End(reply.status());
    backend_->uploads->Keep(*ticket_);
    *response_->mutable_artifact() = ToProto(Expect<core::ArtifactRef>(*std::move(reply)));
    End(absl::OkStatus());
  });
}

core::Command Upload::ToCommand(core::CommandBody body) const {
  return {.principal = worker_,
          .body = std::move(body),
          .certificate_generation = certificate_generation_,
          .standing = {.role = "worker"}};
}

void Upload::Drop(absl::AnyInvocable<void()> done) {
  if (!ticket_.has_value()) return done();
  backend_->uploads->Drop(*ticket_, std::move(done));
}

}  // namespace assay::api
