#include "worker/engine/lr_schedule.h"

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"

namespace assay {

double LrScale(LrScaling scaling, int64_t global_batch, int64_t base_batch) {
  const double ratio = static_cast<double>(global_batch) / static_cast<double>(base_batch);
  switch (scaling) {
    case LrScaling::kNone:
      return 1;
    case LrScaling::kLinear:
      return ratio;
    case LrScaling::kSqrt:
      return std::sqrt(ratio);
  }
  return 1;
}

absl::Status Validate(const LrSchedule& schedule) {
  if (!(schedule.base > 0) || !(schedule.scale > 0) || !std::isfinite(schedule.peak()))
    return absl::InvalidArgumentError(absl::StrCat("learning rate ", schedule.base, " times scale ",
                                                   schedule.scale, " must be positive"));
  if (schedule.warmup_epochs < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("warmup_epochs is ", schedule.warmup_epochs, "; must not be negative"));
  std::set<int64_t> boundaries;
  for (const LrDecay& decay : schedule.decays) {
    if (decay.boundary_epoch < 0 || !boundaries.insert(decay.boundary_epoch).second)
      return absl::InvalidArgumentError(
          absl::StrCat("decay boundary ", decay.boundary_epoch, " is negative or given twice"));
    if (!(decay.factor > 0) || !std::isfinite(decay.factor))
      return absl::InvalidArgumentError(absl::StrCat("decay factor ", decay.factor, " at boundary ",
                                                     decay.boundary_epoch, " must be positive"));
  }
  return absl::OkStatus();
}

double LearningRateAt(const LrSchedule& schedule, int64_t epoch) {
  if (epoch < schedule.warmup_epochs)
    return schedule.base + static_cast<double>(epoch) * (schedule.peak() - schedule.base) /
                               static_cast<double>(schedule.warmup_epochs);
  LrDecay current = {.boundary_epoch = -1, .factor = 1};
  for (const LrDecay& decay : schedule.decays)
    if (decay.boundary_epoch < epoch && decay.boundary_epoch > current.boundary_epoch)
      current = decay;
  return schedule.peak() * current.factor;
}

}  // namespace assay
