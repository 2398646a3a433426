// One call of WorkerService.UploadArtifact.

#ifndef SERVER_API_UPLOAD_H_
#define SERVER_API_UPLOAD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "assay/v1/worker_service.pb.h"

#include "server/api/piece_stream.h"
#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

// The core is asked at the header whether the caller may deliver that; only then bytes are taken.
// An upload that is refused, or not what was announced, leaves nothing behind.
class Upload final : public PieceStream<v1::UploadArtifactRequest> {
 public:
  // `backend` must outlive it; `response` is gRPC's. A refused `admission` ends the call at once.
  Upload(const Backend* backend, const absl::StatusOr<auth::Identity>& admission,
         v1::UploadArtifactResponse* response);

 private:
  void Take(v1::UploadArtifactRequest* message) override;
  void Complete() override;
  void Drop(absl::AnyInvocable<void()> done) override;

  void Begin(const v1::UploadHeader& header, std::string data);
  void Append(std::string data);
  void Record(core::ArtifactRef artifact);
  core::Command ToCommand(core::CommandBody body) const;

  const Backend* const backend_;
  const std::string worker_;
  const int64_t certificate_generation_;
  v1::UploadArtifactResponse* const response_;

  // One step at a time touches these.
  std::optional<core::RecordArtifact> record_;  // once the header has come
  std::optional<runtime::Uploads::Ticket> ticket_;
};

}  // namespace assay::api

#endif  // SERVER_API_UPLOAD_H_
