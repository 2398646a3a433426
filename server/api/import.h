// One call of SubmissionService.ImportSubmission: published history, in pieces. Logs go to the
// artifact store and are judged by this coordinator's rules one after the other; at the end one
// command goes to the core. An import that is refused leaves nothing behind.

#ifndef SERVER_API_IMPORT_H_
#define SERVER_API_IMPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "assay/v1/submission_service.pb.h"

#include "server/api/piece_stream.h"
#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

// DATA_LOSS if a log does not have its digest; INVALID_ARGUMENT for parts out of order.
class Import final : public PieceStream<v1::ImportSubmissionRequest> {
 public:
  // `backend` must outlive it; `response` is gRPC's. A refused `admission` ends the call at once.
  Import(const Backend* backend, absl::StatusOr<auth::Identity> admission,
         v1::Submission* response);

 private:
  // A log on its way in.
  struct OpenRun {
    v1::ImportedRun header;
    runtime::Uploads::Ticket ticket;
  };

  void Take(v1::ImportSubmissionRequest* message) override;
  void Complete() override;
  void Drop(absl::AnyInvocable<void()> done) override;

  absl::Status TakeHeader(const v1::ImportHeader& header);
  absl::Status CheckRun(const v1::ImportedRun& run);
  void TakeRun(const v1::ImportedRun& run);
  void TakeLog(std::string bytes);
  // Files and judges the log that is open, if one is; then calls `next`.
  void CloseRun(absl::AnyInvocable<void()> next);
  void AddRun(core::ArtifactRef log, core::RunFacts facts);
  absl::Status Score();
  void Post();

  const Backend* const backend_;
  const absl::StatusOr<auth::Identity> admission_;
  v1::Submission* const response_;

  // One step at a time touches these.
  std::optional<v1::ImportHeader> header_;
  bool is_whole_ = false;  // the client has said that nothing more comes
  bool is_judged_here_ = false;
  int64_t header_bytes_ = 0;  // of all runs
  std::optional<OpenRun> open_;
  std::vector<runtime::Uploads::Ticket> tickets_;
  core::Submission submission_;  // as the rules want to see it
  std::vector<core::Run> runs_;
  core::ImportSubmission command_;
};

}  // namespace assay::api

#endif  // SERVER_API_IMPORT_H_
