#include "server/runtime/upkeep.h"

#include <utility>

#include "absl/time/time.h"

#include "common/status.h"
#include "server/store/backup.h"
#include "server/store/diagnosis.h"
#include "server/store/prune.h"
#include "server/store/usage.h"

namespace assay::runtime {
namespace {

// Backups and measurements that take turns; of one directory only one at a time.
constexpr size_t kUpkeepMax = 8;
constexpr char kTooMany[] = "too many backups are under way; retry later";

absl::StatusOr<Upkeep::Step> NextStep(store::Backup* backup) {
  Upkeep::Step step;
  ASSIGN_OR_RETURN(step.faults, backup->Step());
  step.counts = backup->counts();
  step.is_last = backup->is_done();
  return step;
}

absl::StatusOr<Upkeep::PruneStep> NextPruneStep(store::Pruning* pruning) {
  Upkeep::PruneStep step;
  ASSIGN_OR_RETURN(step.found, pruning->Step());
  step.is_last = pruning->is_done();
  return step;
}

}  // namespace

Upkeep::Upkeep(std::string data_directory, const Clock* clock)
    : data_directory_(std::move(data_directory)), clock_(clock), thread_("upkeep", kUpkeepMax) {}

Upkeep::~Upkeep() {
  Stop();
}

void Upkeep::Stop() {
  thread_.Stop();
}

Upkeep::Backup Upkeep::BeginBackup(const std::string& directory, const std::string& version) const {
  return std::make_shared<store::Backup>(
      store::BackupOptions{.data_directory = data_directory_,
                           .directory = directory,
                           .version = version,
                           .now_us = absl::ToUnixMicros(clock_->Wall())});
}

void Upkeep::Next(Backup backup, Callback callback) {
  // Shared between the task and the refusal, of which only one happens.
  auto shared = std::make_shared<Callback>(std::move(callback));
  const bool is_taken =
      thread_.Post([backup = std::move(backup), shared] { (*shared)(NextStep(backup.get())); });
  if (!is_taken) (*shared)(absl::ResourceExhaustedError(kTooMany));
}

absl::StatusOr<Upkeep::Pruning> Upkeep::BeginPruning(const core::RetentionPolicy& policy) const {
  const auto ended_before = [this](int32_t days) {
    return days == 0 ? int64_t{0} : absl::ToUnixMicros(clock_->Wall() - days * absl::Hours(24));
  };
  ASSIGN_OR_RETURN(std::unique_ptr<store::Pruning> pruning,
                   store::Pruning::Open(data_directory_,
                                        {.telemetry_ended_us = ended_before(policy.telemetry_days),
                                         .progress_ended_us = ended_before(policy.progress_days)}));
  return Pruning(std::move(pruning));
}

void Upkeep::NextPrunable(Pruning pruning,
                          absl::AnyInvocable<void(absl::StatusOr<PruneStep>)> callback) {
  auto shared = std::make_shared<decltype(callback)>(std::move(callback));
  const bool is_taken = thread_.Post(
      [pruning = std::move(pruning), shared] { (*shared)(NextPruneStep(pruning.get())); });
  if (!is_taken) (*shared)(absl::ResourceExhaustedError(kTooMany));
}

void Upkeep::RemovePruned(Pruning pruning, std::vector<core::PrunedArtifact> artifacts,
                          absl::AnyInvocable<void(absl::Status)> callback) {
  auto shared = std::make_shared<decltype(callback)>(std::move(callback));
  const bool is_taken =
      thread_.Post([pruning = std::move(pruning), artifacts = std::move(artifacts), shared] {
        (*shared)(pruning->Remove(artifacts));
      });
  if (!is_taken) (*shared)(absl::ResourceExhaustedError(kTooMany));
}

void Upkeep::MeasureUsage(absl::AnyInvocable<void(absl::StatusOr<core::StoreUsage>)> callback) {
  auto shared = std::make_shared<decltype(callback)>(std::move(callback));
  const bool is_taken =
      thread_.Post([this, shared] { (*shared)(store::MeasureUsage(data_directory_)); });
  if (!is_taken) (*shared)(absl::ResourceExhaustedError(kTooMany));
}

void Upkeep::Diagnose(bool is_checked,
                      absl::AnyInvocable<void(absl::StatusOr<core::StoreDiagnosis>)> callback) {
  auto shared = std::make_shared<decltype(callback)>(std::move(callback));
  const bool is_taken = thread_.Post(
      [this, is_checked, shared] { (*shared)(store::Diagnose(data_directory_, is_checked)); });
  if (!is_taken) (*shared)(absl::ResourceExhaustedError(kTooMany));
}

}  // namespace assay::runtime
