#include "server/runtime/uploads.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "server/store/artifacts.h"

namespace assay::runtime {
namespace {

// Pieces that may wait; each is at most 64 KiB, so this bounds the memory at 64 MiB.
constexpr size_t kWaitingMax = 1024;
// Open at once; each that is not filed yet has a file descriptor. An import has one per run.
constexpr size_t kOpenMax = 4096;
constexpr size_t kUnfiledMax = 512;

absl::Status Busy() {
  return absl::ResourceExhaustedError("too many uploads wait; retry later");
}

absl::Status Unknown(Uploads::Ticket ticket) {
  return absl::NotFoundError(absl::StrCat("there is no open upload ", ticket));
}

}  // namespace

Uploads::Uploads(store::ArtifactStore* artifacts)
    : artifacts_(artifacts), thread_("uploads", kWaitingMax) {}

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
                 size_t filed_count = 0;
                 for (const auto& [sha256, filed] : filed_)
                   filed_count += static_cast<size_t>(filed.upload_count);
                 if (uploads_.size() >= kOpenMax || uploads_.size() - filed_count >= kUnfiledMax)
                   return Busy();
                 Upload upload;
                 ASSIGN_OR_RETURN(upload.writer, artifacts_->Begin(announced));
                 uploads_.emplace(++last_ticket_, std::move(upload));
                 return last_ticket_;
               });
}

void Uploads::Append(Ticket ticket, std::string bytes,
                     absl::AnyInvocable<void(absl::Status)> callback) {
  PostOrRefuse(std::move(callback), [this, ticket, bytes = std::move(bytes)] {
    const auto it = uploads_.find(ticket);
    if (it == uploads_.end() || it->second.writer == nullptr) return Unknown(ticket);
    return it->second.writer->Append(bytes);
  });
}

absl::StatusOr<core::ArtifactRef> Uploads::File(Ticket ticket) {
  const auto it = uploads_.find(ticket);
  if (it == uploads_.end() || it->second.writer == nullptr) return Unknown(ticket);
  Upload& upload = it->second;
  const std::string& sha256 = upload.writer->announced().sha256;
  const bool was_there = artifacts_->Has(sha256);
  const std::unique_ptr<store::ArtifactWriter> writer = std::move(upload.writer);
  ASSIGN_OR_RETURN(core::ArtifactRef artifact, writer->Finish());
  upload.sha256 = artifact.sha256;
  Filed& filed = filed_[artifact.sha256];
  if (filed.upload_count++ == 0) filed.is_ours = !was_there;
  return artifact;
}

void Uploads::Finish(Ticket ticket,
                     absl::AnyInvocable<void(absl::StatusOr<core::ArtifactRef>)> callback) {
  PostOrRefuse(std::move(callback), [this, ticket] { return File(ticket); });
}

void Uploads::Read(Ticket ticket, absl::AnyInvocable<void(absl::string_view)> take,
                   absl::AnyInvocable<void(absl::Status)> callback) {
  PostOrRefuse(std::move(callback),
               [this, ticket, take = std::move(take)]() mutable -> absl::Status {
                 const auto it = uploads_.find(ticket);
                 if (it == uploads_.end() || it->second.sha256.empty()) return Unknown(ticket);
                 return artifacts_->ReadVerified(it->second.sha256,
                                                 [&take](absl::string_view bytes) { take(bytes); });
               });
}

void Uploads::End(Ticket ticket, bool is_kept) {
  const auto it = uploads_.find(ticket);
  if (it == uploads_.end()) return;
  const std::string sha256 = it->second.sha256;
  uploads_.erase(it);  // with what an unfinished one has written
  const auto filed = filed_.find(sha256);
  if (filed == filed_.end()) return;
  if (is_kept) filed->second.is_ours = false;
  if (--filed->second.upload_count > 0) return;
  if (filed->second.is_ours)
    if (const absl::Status status = artifacts_->Remove(sha256); !status.ok())
      LOG(ERROR) << "cannot remove artifact=" << sha256 << " status=" << Quoted(status);
  filed_.erase(filed);
}

void Uploads::Keep(Ticket ticket) {
  // While it is stopping nothing is removed any more, so there is nothing to keep it from.
  [[maybe_unused]] const bool is_taken =
      thread_.PostLimitless([this, ticket] { End(ticket, /*is_kept=*/true); });
}

void Uploads::Drop(Ticket ticket, absl::AnyInvocable<void()> done) {
  // Shared between the task and the refusal, of which only one happens.
  auto shared = std::make_shared<absl::AnyInvocable<void()>>(std::move(done));
  const bool is_taken = thread_.PostLimitless([this, ticket, shared] {
    End(ticket, /*is_kept=*/false);
    (*shared)();
  });
  if (!is_taken) (*shared)();
}

}  // namespace assay::runtime
