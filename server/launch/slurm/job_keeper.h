// The allocations that are wanted, and the jobs that Slurm has for them: looks at both and does
// what makes them agree. Without threads and without a clock.
//
// A job is known by its name and comment, never by its number: that of a lost job is given again.
// Before each sbatch the name is looked up, and after an sbatch of which nobody knows what it did,
// again 5, 15 and 60 s later. A job that is missing has not ended: three answers without it, over a
// minute, say that it has vanished. While Slurm is silent nothing changes.

#ifndef SERVER_LAUNCH_SLURM_JOB_KEEPER_H_
#define SERVER_LAUNCH_SLURM_JOB_KEEPER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "server/core/command.h"
#include "server/launch/slurm/slurm.h"

namespace assay::launch::slurm {

// What the nodes of a job find in its folder. Errors are reported as failures of the launch.
class JobFolder {
 public:
  virtual ~JobFolder() = default;
  // Makes the folder and what the job needs to start; the request for it, without name and comment.
  virtual absl::StatusOr<JobRequest> Prepare(const core::Allocation& allocation) = 0;
  // Lets these workers enrol, if they need more for it than that their job runs.
  virtual absl::Status Admit(core::AllocationId allocation,
                             const std::vector<std::string>& workers) = 0;
  // Sees to it that what its agents had to leave behind is delivered, now that they are gone. True
  // once that is done, or cannot be; false: ask again.
  virtual bool Settle(core::AllocationId allocation) = 0;
  // No worker of it enrols any more; with `is_in_order` nobody will want to look at the folder.
  virtual void Close(core::AllocationId allocation, bool is_in_order) = 0;
};

struct KeeperOptions {
  std::string instance;                          // of this coordinator's database
  absl::Duration poll_soon = absl::Seconds(10);  // while something waits or ends
  absl::Duration poll_late = absl::Seconds(60);
};

// Not thread-safe.
class JobKeeper {
 public:
  using Report = std::function<void(core::LaunchReported)>;

  // All must outlive it.
  JobKeeper(KeeperOptions options, Slurm* slurm, JobFolder* folder, Report report);

  ~JobKeeper();

  // The allocation shall have a job. Said again: what has become of it is reported anew.
  void Want(const core::Allocation& allocation);

  // It shall have none.
  void Release(core::AllocationId allocation);

  // Looks at Slurm once and acts; when to look again, if nothing is said before. `now` never goes
  // backwards.
  absl::Time Look(absl::Time now);

 private:
  struct Held;
  using Jobs = std::vector<Job>;

  absl::Time Silent(const absl::Status& status, absl::Time now);
  void Advance(Held* held, const Jobs& jobs, absl::Time now);
  void AdvanceWanted(Held* held, const Job& job, absl::Time now);
  void AdvanceReleased(Held* held, const Job& job, absl::Time now);
  void Wait(Held* held, const Job& job, absl::Time now);
  void Grant(Held* held, const Job& job);
  void Miss(Held* held, absl::Time now);
  void Submit(Held* held, absl::Time now);
  void Doubt(Held* held, const Job& job, absl::Time now);
  void End(Held* held, const std::string& reason);
  void Tell(Held* held, core::LaunchReported report);
  void Cancel(const Job& job, absl::string_view why);
  void CancelLater(const Jobs& jobs, const Job& kept);
  void CareForOrphans(const Jobs& jobs);
  absl::Time NextLook(absl::Time now) const;

  const KeeperOptions options_;
  Slurm* const slurm_;
  JobFolder* const folder_;
  const Report report_;
  std::map<core::AllocationId, Held> held_;
  absl::Duration silence_pause_;  // zero: Slurm has answered
  absl::Time silent_since_ = absl::InfiniteFuture();
};

}  // namespace assay::launch::slurm

#endif  // SERVER_LAUNCH_SLURM_JOB_KEEPER_H_
