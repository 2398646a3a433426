#include "worker/engine/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"

namespace assay {
namespace {

absl::Status Validate(const LrFade& fade) {
  if (fade.epochs < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("a decay over ", fade.epochs, " epochs; want 0 (none) or more"));
  if (!(fade.end_factor >= 0 && fade.end_factor <= 1))
    return absl::InvalidArgumentError(
        absl::StrCat("a decay to ", fade.end_factor, " of the peak; want a number in [0, 1]"));
  if (!(fade.power > 0) || !std::isfinite(fade.power))
    return absl::InvalidArgumentError(
        absl::StrCat("a decay with power ", fade.power, "; want a positive number"));
  return absl::OkStatus();
}

}  // namespace

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
  if (schedule.fade.epochs > 0 && !schedule.decays.empty())
    return absl::InvalidArgumentError(
        "boundaries of the learning rate beside a decay over epochs; choose one of them");
  return Validate(schedule.fade);
}

double LearningRateAt(const LrSchedule& schedule, int64_t epoch) {
  if (epoch < schedule.warmup_epochs)
    return schedule.base + static_cast<double>(epoch) * (schedule.peak() - schedule.base) /
                               static_cast<double>(schedule.warmup_epochs);
  if (schedule.fade.epochs > 0) {
    const LrFade& fade = schedule.fade;
    const double passed = static_cast<double>(epoch - schedule.warmup_epochs);
    const double part = std::max(0.0, 1 - passed / static_cast<double>(fade.epochs));
    return schedule.peak() * (fade.end_factor + (1 - fade.end_factor) * std::pow(part, fade.power));
  }
  LrDecay current = {.boundary_epoch = -1, .factor = 1};
  for (const LrDecay& decay : schedule.decays)
    if (decay.boundary_epoch < epoch && decay.boundary_epoch > current.boundary_epoch)
      current = decay;
  return schedule.peak() * current.factor;
}

}  // namespace assay
