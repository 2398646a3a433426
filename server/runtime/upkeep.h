// Backups of the store, the removal of what is old, and what it takes of the disk, on a thread of
// their own: neither commits nor questions wait for them.

#ifndef SERVER_RUNTIME_UPKEEP_H_
#define SERVER_RUNTIME_UPKEEP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "common/clock.h"
#include "server/core/query.h"
#include "server/core/upkeep.h"
#include "server/runtime/task_thread.h"

namespace assay::store {
class Backup;
class Pruning;
}  // namespace assay::store

namespace assay::runtime {

// Thread-safe.
class Upkeep {
 public:
  // `clock` must outlive it.
  Upkeep(std::string data_directory, const Clock* clock);
  ~Upkeep();

  // One from its beginning, into `directory`; `version` of this program will be in it. Shared by
  // whoever follows it and the step that is under way; given up when nobody holds it.
  using Backup = std::shared_ptr<store::Backup>;
  Backup BeginBackup(const std::string& directory, const std::string& version) const;

  struct Step {
    std::vector<core::StoredFault> faults;
    core::BackupCounts counts;  // so far
    bool is_last = false;
  };
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Step>)>;

  // Does the next step (store/backup.h) and calls back exactly once, on the thread, or at once with
  // RESOURCE_EXHAUSTED if too many wait. One step of a backup at a time.
  void Next(Backup backup, Callback callback);

  // What `policy` lets go, from the beginning. As a backup is held.
  using Pruning = std::shared_ptr<store::Pruning>;
  absl::StatusOr<Pruning> BeginPruning(const core::RetentionPolicy& policy) const;

  struct PruneStep {
    std::vector<core::PrunableFiles> found;
    bool is_last = false;
  };
  // The next files that may go, and the removal of some of which that is committed (store/prune.h).
  // Each calls back exactly once, as Next does; one call of a pruning at a time.
  void NextPrunable(Pruning pruning, absl::AnyInvocable<void(absl::StatusOr<PruneStep>)> callback);
  void RemovePruned(Pruning pruning, std::vector<core::PrunedArtifact> artifacts,
                    absl::AnyInvocable<void(absl::Status)> callback);

  // What everything that is kept takes of the disk, and what is free.
  void MeasureUsage(absl::AnyInvocable<void(absl::StatusOr<core::StoreUsage>)> callback);

  // A quick look at the database (store/diagnosis.h).
  void Diagnose(bool is_checked,
                absl::AnyInvocable<void(absl::StatusOr<core::StoreDiagnosis>)> callback);

  // Does the steps that are queued, then refuses.
  void Stop();

 private:
  const std::string data_directory_;
  const Clock* const clock_;
  TaskThread thread_;
};

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_UPKEEP_H_
