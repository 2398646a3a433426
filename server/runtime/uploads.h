// Artifacts on their way in: pieces go to disk on a thread of their own, the next is asked for when
// the last is written.

#ifndef SERVER_RUNTIME_UPLOADS_H_
#define SERVER_RUNTIME_UPLOADS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/core/types.h"
#include "server/runtime/task_thread.h"

namespace assay::store {
class ArtifactStore;
class ArtifactWriter;
}  // namespace assay::store

namespace assay::runtime {

// Every method returns at once; its callback is called exactly once, on the upload thread, or at
// once with RESOURCE_EXHAUSTED if too many calls wait. Thread-safe.
class Uploads {
 public:
  using Ticket = int64_t;

  // `artifacts` must outlive this.
  explicit Uploads(store::ArtifactStore* artifacts);
  ~Uploads();

  // Opens an upload of an artifact with the announced digest and size. INVALID_ARGUMENT for a bad
  // digest, file name or size.
  void Begin(core::ArtifactRef announced,
             absl::AnyInvocable<void(absl::StatusOr<Ticket>)> callback);
  // Writes the next piece. INVALID_ARGUMENT beyond the announced size; then the upload is gone.
  void Append(Ticket ticket, std::string bytes, absl::AnyInvocable<void(absl::Status)> callback);
  // Verifies, fsyncs and files the bytes under their digest. DATA_LOSS if they differ from what was
  // announced. On success post RecordArtifact to the core; only its reply means "recorded".
  void Finish(Ticket ticket, absl::AnyInvocable<void(absl::StatusOr<core::ArtifactRef>)> callback);
  // Drops an upload that will not be finished. Unknown tickets are ignored.
  void Abandon(Ticket ticket);

  // The whole artifact in one call, for what fits into a message (an imported log).
  void Put(std::string file_name, std::string bytes,
           absl::AnyInvocable<void(absl::StatusOr<core::ArtifactRef>)> callback);

  void Stop();

 private:
  // Runs `work` on the thread and gives its result to `callback`, or refuses.
  template <typename Callback, typename Work>
  void PostOrRefuse(Callback callback, Work work);

  store::ArtifactStore* const artifacts_;

  // Used on the thread only.
  Ticket last_ticket_ = 0;
  std::map<Ticket, std::unique_ptr<store::ArtifactWriter>> writers_;

  TaskThread thread_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_UPLOADS_H_
