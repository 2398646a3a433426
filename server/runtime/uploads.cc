#include "server/runtime/uploads.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "server/store/artifacts.h"

namespace assay::runtime {
namespace {

// Pieces that may wait; each is at most 64 KiB, so this bounds the memory at 64 MiB.
constexpr size_t kUploadsMax = 1024;

absl::Status Busy() {
  return absl::ResourceExhaustedError("too many uploads wait; retry later");
}

absl::Status Unknown(Uploads::Ticket ticket) {
  return absl::NotFoundError(absl::StrCat("there is no upload ", ticket));
}

}  // namespace

Uploads::Uploads(store::ArtifactStore* artifacts)
    : artifacts_(artifacts), thread_("uploads", kUploadsMax) {}

Uploads::~Uploads() {
  Stop();
}

void Uploads::Stop() {
  thread_.Stop();
}

// The callback is shared between the task and the refusal, of which only one happens.
template <typename Callback, typename Work>
void Uploads::PostOrRefuse(Callback callback, Work work) {
  auto shared = std::make_shared<Callback>(std::move(callback));
  const bool is_taken =
      thread_.Post([shared, work = std::move(work)]() mutable { (*shared)(work()); });
  if (!is_taken) (*shared)(Busy());
}

void Uploads::Begin(core::ArtifactRef announced,
                    absl::AnyInvocable<void(absl::StatusOr<Ticket>)> callback) {
  PostOrRefuse(std::move(callback),
               [this, announced = std::move(announced)]() -> absl::StatusOr<Ticket> {
                 auto writer = artifacts_->Begin(announced);
                 if (!writer.ok()) return writer.status();
                 writers_.emplace(++last_ticket_, *std::move(writer));
                 return last_ticket_;
               });
}

void Uploads::Append(Ticket ticket, std::string bytes,
                     absl::AnyInvocable<void(absl::Status)> callback) {
  PostOrRefuse(std::move(callback), [this, ticket, bytes = std::move(bytes)] {
    const auto it = writers_.find(ticket);
    if (it == writers_.end()) return Unknown(ticket);
    absl::Status status = it->second->Append(bytes);
    if (!status.ok()) writers_.erase(it);
    return status;
  });
}

void Uploads::Finish(Ticket ticket,
                     absl::AnyInvocable<void(absl::StatusOr<core::ArtifactRef>)> callback) {
  PostOrRefuse(std::move(callback), [this, ticket]() -> absl::StatusOr<core::ArtifactRef> {
    const auto it = writers_.find(ticket);
    if (it == writers_.end()) return Unknown(ticket);
    absl::StatusOr<core::ArtifactRef> artifact = it->second->Finish();
    writers_.erase(it);
    return artifact;
  });
}

void Uploads::Abandon(Ticket ticket) {
  // If the queue is full the upload stays until the process ends, like any that is left alone.
  [[maybe_unused]] const bool is_taken = thread_.Post([this, ticket] { writers_.erase(ticket); });
}

void Uploads::Put(std::string file_name, std::string bytes,
                  absl::AnyInvocable<void(absl::StatusOr<core::ArtifactRef>)> callback) {
  PostOrRefuse(std::move(callback),
               [this, file_name = std::move(file_name), bytes = std::move(bytes)] {
                 return artifacts_->Put(file_name, bytes);
               });
}

}  // namespace assay::runtime
