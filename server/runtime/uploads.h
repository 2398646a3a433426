// Artifacts on their way in: pieces go to disk on a thread of their own, the next is asked for when
// the last is written. What no run comes to hold is removed again.

#ifndef SERVER_RUNTIME_UPLOADS_H_
#define SERVER_RUNTIME_UPLOADS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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
  // Of one upload, from Begin until Keep or Drop.
  using Ticket = int64_t;

  // `artifacts` must outlive this.
  explicit Uploads(store::ArtifactStore* artifacts);
  ~Uploads();

  // Opens an upload of an artifact with the announced digest and size. INVALID_ARGUMENT for a bad
  // digest, file name or size; RESOURCE_EXHAUSTED while too many are open.
  void Begin(core::ArtifactRef announced,
             absl::AnyInvocable<void(absl::StatusOr<Ticket>)> callback);
  // Writes the next piece. INVALID_ARGUMENT beyond the announced size.
  void Append(Ticket ticket, std::string bytes, absl::AnyInvocable<void(absl::Status)> callback);
  // Verifies, fsyncs and files the bytes under their digest. DATA_LOSS if they differ from what was
  // announced. On success post a command to the core that names them; only its reply means
  // "recorded".
  void Finish(Ticket ticket, absl::AnyInvocable<void(absl::StatusOr<core::ArtifactRef>)> callback);
  // Hands the bytes of an upload that is finished to `take`, in pieces, on the upload thread. The
  // callback says whether they were verified once more; if not, what was taken is worth nothing.
  void Read(Ticket ticket, absl::AnyInvocable<void(absl::string_view)> take,
            absl::AnyInvocable<void(absl::Status)> callback);

  // One of these ends every upload; neither fails, and unknown tickets are ignored.
  // Keep: a run holds the artifact now.
  void Keep(Ticket ticket);
  // Drop: no run holds it by this upload. What was written goes, be it filed, unless it was there
  // before or another upload brings the same bytes. Then `done` is called, on the upload thread; at
  // once while it is stopping.
  void Drop(Ticket ticket, absl::AnyInvocable<void()> done);

  void Stop();

 private:
  struct Upload {
    std::unique_ptr<store::ArtifactWriter> writer;  // until it is filed
    std::string sha256;                             // once it is filed
  };
  // Of bytes that are filed and held by no run yet, as far as we know.
  struct Filed {
    int upload_count = 0;
    bool is_ours = false;  // these uploads have brought them: they go with the last
  };

  // Runs `work` on the thread and gives its result to `callback`, or refuses.
  template <typename Callback, typename Work>
  void PostOrRefuse(Callback callback, Work work);
  absl::StatusOr<core::ArtifactRef> File(Ticket ticket);
  void End(Ticket ticket, bool is_kept);

  store::ArtifactStore* const artifacts_;

  // Used on the thread only.
  Ticket last_ticket_ = 0;
  std::map<Ticket, Upload> uploads_;
  std::map<std::string, Filed> filed_;  // by digest

  TaskThread thread_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_UPLOADS_H_
