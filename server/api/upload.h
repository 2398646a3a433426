// One call of WorkerService.UploadArtifact.

#ifndef SERVER_API_UPLOAD_H_
#define SERVER_API_UPLOAD_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <optional>
#include <string>

#include "assay/v1/worker_service.pb.h"

#include "common/mutex.h"
#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

// Strictly in sequence: read a message, write its bytes to disk, read the next; then verify, file,
// and record. Deletes itself when the call is over.
class Upload final : public grpc::ServerReadReactor<v1::UploadArtifactRequest> {
 public:
  // `backend` must outlive it; `response` is gRPC's. A refused `admission` ends the call at once.
  Upload(const Backend* backend, const absl::StatusOr<auth::Identity>& admission,
         v1::UploadArtifactResponse* response);

  void OnReadDone(bool ok) override;
  // Nothing to do: the read or the step under way ends the call.
  void OnCancel() override {}
  void OnDone() override { delete this; }

 private:
  absl::Status TakeHeader();
  void Append();
  void Complete();
  void Record(core::ArtifactRef artifact);
  // Drops what was written and ends the call.
  void Fail(const absl::Status& status);

  const Backend* const backend_;
  const std::string worker_;
  const int64_t certificate_generation_;
  v1::UploadArtifactResponse* const response_;

  // One step at a time touches these.
  v1::UploadArtifactRequest message_;
  std::optional<core::RecordArtifact> record_;  // once the header has come
  std::optional<runtime::Uploads::Ticket> ticket_;
};

}  // namespace assay::api

#endif  // SERVER_API_UPLOAD_H_
