// Sources of programs on their way: in with a submission, out to the nodes that execute its runs.

#ifndef SERVER_API_SOURCE_STREAMS_H_
#define SERVER_API_SOURCE_STREAMS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "assay/v1/submission_service.pb.h"
#include "assay/v1/worker_service.pb.h"

#include "server/api/piece_stream.h"
#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

inline constexpr absl::string_view kDownloadSource = "assay.v1.WorkerService/DownloadSource";

// One call of CreateSubmissionWithSource. The source is on stable storage before the core is asked;
// if the submission is refused, or was made by an earlier call, nothing is left of it.
class SourcedCreation final : public PieceStream<v1::CreateSubmissionWithSourceRequest> {
 public:
  // `backend` must outlive it; `response` is gRPC's. A refused `admission` ends the call at once.
  SourcedCreation(const Backend* backend, absl::StatusOr<auth::Identity> admission,
                  v1::Submission* response);

 private:
  void Take(v1::CreateSubmissionWithSourceRequest* message) override;
  void Complete() override;
  void Drop(absl::AnyInvocable<void()> done) override;

  void Begin(const v1::CreateSubmissionRequest& request);
  void Create();
  void Finish(core::SubmissionReply reply);

  const Backend* const backend_;
  const absl::StatusOr<auth::Identity> admission_;
  v1::Submission* const response_;

  // One step at a time touches these.
  std::string request_id_;
  std::optional<runtime::Plan> plan_;  // once the first message has come
  std::optional<runtime::Uploads::Ticket> ticket_;
  bool is_whole_ = false;  // the last message has come
};

// Answers one call of DownloadSource of an admitted worker and deletes itself when the call is
// over. `backend` must outlive it.
grpc::ServerWriteReactor<v1::ArtifactChunk>* NewSourceDownload(
    const Backend* backend, const auth::Identity& identity,
    const v1::DownloadSourceRequest& request);

}  // namespace assay::api

#endif  // SERVER_API_SOURCE_STREAMS_H_
