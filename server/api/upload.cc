#include "server/api/upload.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/api/convert.h"
#include "server/api/limits.h"

namespace assay::api {
Upload::Upload(const Backend* backend, const absl::StatusOr<auth::Identity>& admission,
               v1::UploadArtifactResponse* response)
    : backend_(backend),
      worker_(admission.ok() ? admission->principal : ""),
      certificate_generation_(admission.ok() ? admission->certificate_generation : 0),
      response_(response) {
  if (admission.ok())
    StartRead(&message_);
  else
    Finish(ToGrpc(admission.status()));
}

void Upload::OnReadDone(bool ok) {
  if (!ok) return Complete();
  if (absl::Status limits = CheckLimits(message_); !limits.ok()) return Fail(limits);
  if (record_.has_value()) {
    if (message_.has_header())
      return Fail(absl::InvalidArgumentError("a second header: send it in the first message only"));
    return Append();
  }
  const absl::Status header = TakeHeader();
  if (!header.ok()) return Fail(header);
  backend_->uploads->Begin(record_->artifact,
                           [this](absl::StatusOr<runtime::Uploads::Ticket> ticket) {
                             if (!ticket.ok()) return Fail(ticket.status());
                             ticket_ = *ticket;
                             Append();
                           });
}

absl::Status Upload::TakeHeader() {
  if (!message_.has_header())
    return absl::InvalidArgumentError("the first message has no header: send run and digest first");
  const v1::UploadHeader& header = message_.header();
  core::RecordArtifact record;
  ASSIGN_OR_RETURN(record.run, ParseRunName(header.run()));
  record.generation = header.generation();
  record.artifact = {.file_name = header.file_name(),
                     .sha256 = header.sha256(),
                     .size_bytes = header.size_bytes()};
  record.worker = worker_;
  record_ = std::move(record);
  return absl::OkStatus();
}

void Upload::Append() {
  if (message_.data().empty()) return StartRead(&message_);
  backend_->uploads->Append(*ticket_, std::move(*message_.mutable_data()),
                            [this](const absl::Status& status) {
                              if (!status.ok()) return Fail(status);
                              StartRead(&message_);
                            });
}

void Upload::Complete() {
  if (!ticket_.has_value())
    return Fail(absl::InvalidArgumentError("an upload without a message: send a header"));
  const runtime::Uploads::Ticket ticket = *std::exchange(ticket_, std::nullopt);
  backend_->uploads->Finish(ticket, [this](absl::StatusOr<core::ArtifactRef> filed) {
    if (!filed.ok()) return Fail(filed.status());
    Record(*std::move(filed));
  });
}

void Upload::Record(core::ArtifactRef artifact) {
  record_->artifact = std::move(artifact);
  backend_->core->Post({.principal = worker_,
                        .body = *std::move(record_),
                        .certificate_generation = certificate_generation_},
                       [this](absl::StatusOr<core::Reply> reply) {
                         if (!reply.ok()) return Fail(reply.status());
                         *response_->mutable_artifact() =
                             ToProto(Expect<core::ArtifactRef>(*std::move(reply)));
                         Finish(grpc::Status::OK);
                       });
}

void Upload::Fail(const absl::Status& status) {
  if (ticket_.has_value()) backend_->uploads->Abandon(*ticket_);
  Finish(ToGrpc(status));
}

}  // namespace assay::api
