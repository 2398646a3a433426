#include "server/api/stored_engines.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/log.h"
#include "server/runtime/queries.h"

namespace assay::api {
namespace {

// Far more than a model's convolutions take; it travels with the order.
constexpr int64_t kEnginesBytesMax = 1 << 20;

// One reading, which lives until it has told.
class EnginesReading : public std::enable_shared_from_this<EnginesReading> {
 public:
  EnginesReading(const Backend* backend, core::RunId run,
                 absl::AnyInvocable<void(std::string)> done)
      : backend_(backend), run_(run), done_(std::move(done)) {}

  void Begin(const core::ArtifactRef& artifact) {
    if (artifact.size_bytes > kEnginesBytesMax)
      return End(absl::InvalidArgumentError("the file is too large"));
    backend_->queries->OpenArtifact(
        artifact.sha256,
        [self = shared_from_this()](absl::StatusOr<runtime::Queries::ArtifactReading> reading) {
          if (!reading.ok()) return self->End(reading.status());
          self->reading_ = *std::move(reading);
          self->Next();
        });
  }

 private:
  void Next() {
    backend_->queries->ReadArtifact(
        reading_, [self = shared_from_this()](const absl::StatusOr<std::string>& piece) {
          if (!piece.ok()) return self->End(piece.status());
          if (piece->empty()) return self->End(absl::OkStatus());
          self->text_ += *piece;
          self->Next();
        });
  }

  void End(const absl::Status& status) {
    if (!status.ok())
      LOG(WARNING)
          << "run=" << run_.ToString()
          << " chooses its engines anew: those of the run before it cannot be read, status="
          << Quoted(status);
    done_(status.ok() ? std::move(text_) : std::string());
  }

  const Backend* const backend_;
  const core::RunId run_;
  absl::AnyInvocable<void(std::string)> done_;
  runtime::Queries::ArtifactReading reading_;
  std::string text_;
};

}  // namespace

void WithStoredEngines(const Backend* backend, core::RunId run,
                       const std::optional<core::ArtifactRef>& engines,
                       absl::AnyInvocable<void(std::string)> done) {
  if (!engines.has_value()) return done("");
  std::make_shared<EnginesReading>(backend, run, std::move(done))->Begin(*engines);
}

}  // namespace assay::api
