// The bytes of an artifact on their way out: what all calls that send one have in common.

#ifndef SERVER_API_ARTIFACT_STREAM_H_
#define SERVER_API_ARTIFACT_STREAM_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "assay/v1/submission_service.pb.h"

#include "server/api/pull_stream.h"
#include "server/api/services.h"
#include "server/auth/identity.h"

namespace assay::api {

// One call. Whoever derives from it decides which artifact the caller may have, and sends or
// refuses that; see PullStream for its life.
class ArtifactStream : public PullStream<v1::ArtifactChunk> {
 protected:
  // `backend` must outlive it.
  ArtifactStream(const Backend* backend, auth::Identity identity)
      : PullStream(/*follow=*/false), backend_(backend), identity_(std::move(identity)) {}

  // Sends the artifact of that digest, as long as the caller stays admitted. Call once.
  void Send(const std::string& sha256) {
    backend_->queries->OpenArtifact(
        sha256, [this](absl::StatusOr<runtime::Queries::ArtifactReading> reading) {
          if (!reading.ok()) return Refuse(reading.status());
          reading_ = *std::move(reading);
          Start();
        });
  }

  const Backend& backend() const { return *backend_; }
  const auth::Identity& identity() const { return identity_; }

  absl::Status MayContinue() const override { return backend_->guard->Recheck(identity_); }
  void Fetch(Fetched fetched) override {
    backend_->queries->ReadArtifact(
        reading_, [fetched = std::move(fetched)](absl::StatusOr<std::string> bytes) mutable {
          if (!bytes.ok()) return fetched(bytes.status());
          Page page;
          page.is_end = bytes->empty();
          if (!page.is_end) page.messages.emplace_back().set_data(*std::move(bytes));
          fetched(std::move(page));
        });
  }

 private:
  const Backend* const backend_;
  const auth::Identity identity_;
  runtime::Queries::ArtifactReading reading_;  // one fetch at a time touches it
};

}  // namespace assay::api

#endif  // SERVER_API_ARTIFACT_STREAM_H_
