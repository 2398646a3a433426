// Nodes of a Slurm cluster: a job for each allocation, on whose nodes agents run.

#ifndef SERVER_LAUNCH_SLURM_SLURM_LAUNCHER_H_
#define SERVER_LAUNCH_SLURM_SLURM_LAUNCHER_H_

#include <map>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include "common/clock.h"
#include "common/mutex.h"
#include "server/launch/launcher.h"
#include "server/launch/slurm/commands.h"
#include "server/launch/slurm/job_directory.h"
#include "server/launch/slurm/job_keeper.h"

namespace assay::launch::slurm {

struct SlurmOptions {
  KeeperOptions keeper;
  CommandOptions commands;
  JobDirectoryOptions folder;
  const Clock* clock = nullptr;
  JobKeeper::Report report;  // to the core; called on the launcher's thread
};

// Thread-safe. All that concerns Slurm happens on a thread of its own, which is the only one that
// waits for it: Acquire and Release return at once, and the answers follow by `report`.
class SlurmLauncher final : public Launcher {
 public:
  explicit SlurmLauncher(SlurmOptions options);
  // Kills the command that runs; jobs go on.
  ~SlurmLauncher() override;

  absl::StatusOr<std::optional<Grant>> Acquire(const core::Allocation& allocation) override;
  absl::StatusOr<bool> Release(core::AllocationId allocation) override;

 private:
  void Loop();
  // Hands what was asked to the keeper, and waits for more or until `next`. False: the end.
  bool TakeWishes(absl::Time next);

  const RunClock clock_;
  SlurmCommands commands_;
  JobDirectory folder_;
  JobKeeper keeper_;  // the thread's

  Mutex mutex_;
  CondVar changed_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last wish for each; nullopt: that it be released.
  std::map<core::AllocationId, std::optional<core::Allocation>> wishes_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // last: starts when all else is there
};

}  // namespace assay::launch::slurm

#endif  // SERVER_LAUNCH_SLURM_SLURM_LAUNCHER_H_
