#include "server/launch/slurm/slurm_launcher.h"

#include <algorithm>
#include <utility>

namespace assay::launch::slurm {

SlurmLauncher::SlurmLauncher(SlurmOptions options)
    : clock_(options.clock),
      commands_(std::move(options.commands)),
      folder_(std::move(options.folder)),
      keeper_(std::move(options.keeper), &commands_, &folder_, std::move(options.report)),
      thread_([this] { Loop(); }) {}

SlurmLauncher::~SlurmLauncher() {
  commands_.Stop();
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

absl::StatusOr<std::optional<Grant>> SlurmLauncher::Acquire(const core::Allocation& allocation) {
  MutexLock lock(&mutex_);
  wishes_[allocation.id] = allocation;
  changed_.NotifyAll();
  return std::nullopt;
}

absl::StatusOr<bool> SlurmLauncher::Release(core::AllocationId allocation) {
  MutexLock lock(&mutex_);
  wishes_[allocation] = std::nullopt;
  changed_.NotifyAll();
  return false;
}

bool SlurmLauncher::TakeWishes(absl::Time next) {
  MutexLock lock(&mutex_);
  while (!is_stopping_ && wishes_.empty()) {
    const absl::Duration left = next - clock_.Stamp();
    if (left <= absl::ZeroDuration()) break;
    changed_.WaitFor(&mutex_, absl::ToChronoNanoseconds(std::min(left, absl::Hours(1))));
  }
  if (is_stopping_) return false;
  for (const auto& [id, wish] : wishes_) {
    if (wish.has_value()) {
      keeper_.Want(*wish);
    } else {
      keeper_.Release(id);
    }
  }
  wishes_.clear();
  return true;
}

void SlurmLauncher::Loop() {
  absl::Time next = clock_.Stamp();
  while (TakeWishes(next))
    next = keeper_.Look(clock_.Stamp());
}

}  // namespace assay::launch::slurm
