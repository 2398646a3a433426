// Verifications of the store and of backups of it, on a thread of their own: they read as much as
// the disk gives, and neither commits nor questions wait for them.

#ifndef SERVER_RUNTIME_VERIFICATIONS_H_
#define SERVER_RUNTIME_VERIFICATIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "server/core/query.h"
#include "server/runtime/task_thread.h"

namespace assay::store {
class Verification;
}  // namespace assay::store

namespace assay::runtime {

// Thread-safe.
class Verifications {
 public:
  explicit Verifications(std::string data_directory);
  ~Verifications();

  // One from its beginning, of a backup if `backup_directory` is not empty. Shared by whoever
  // follows it and the step that is under way; given up when nobody holds it.
  using Verification = std::shared_ptr<store::Verification>;
  Verification Begin(const std::string& backup_directory) const;

  struct Step {
    std::vector<core::StoredFault> faults;
    core::VerifyCounts counts;  // so far
    bool is_last = false;
  };
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Step>)>;

  // Does the next step, some MiB of reading, and calls back exactly once, on the thread, or at once
  // with RESOURCE_EXHAUSTED if too many wait. One step of a verification at a time.
  void Next(Verification verification, Callback callback);

  // Does the steps that are queued, then refuses.
  void Stop();

 private:
  const std::string data_directory_;
  TaskThread thread_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_VERIFICATIONS_H_
