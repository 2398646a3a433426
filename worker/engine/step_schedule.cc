#include "worker/engine/step_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"

#include "common/status.h"

namespace assay {
namespace {

absl::Status Demand(bool condition, absl::string_view what, double value) {
  if (condition) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("schedule: ", what, ", is ", value));
}

double WarmupRate(const StepSchedule& schedule, int64_t s) {
  const double part = static_cast<double>(s) / static_cast<double>(schedule.warmup_steps);
  if (schedule.warmup_factor == 1) return schedule.base * part;
  return schedule.base * (1 + (schedule.warmup_factor - 1) * part);
}

double CosineRate(const StepSchedule& schedule, double start, int64_t e) {
  const double from = e <= schedule.period ? start : schedule.base;
  const double angle =
      std::numbers::pi * static_cast<double>(e) / static_cast<double>(schedule.period);
  return schedule.least + (from - schedule.least) * (1 + std::cos(angle)) / 2;
}

double PolynomialRate(const StepSchedule& schedule, double start, int64_t e) {
  const double part =
      std::max(0.0, 1 - static_cast<double>(e) / static_cast<double>(schedule.period));
  return schedule.least + (start - schedule.least) * std::pow(part, schedule.power);
}

}  // namespace

absl::string_view StepScheduleName(StepSchedule::Kind kind) {
  switch (kind) {
    case StepSchedule::Kind::kMultistep:
      return "multistep";
    case StepSchedule::Kind::kCosine:
      return "cosine_annealing";
    case StepSchedule::Kind::kPolynomial:
      return "polynomial";
  }
  return "";
}

absl::StatusOr<StepSchedule::Kind> ParseStepSchedule(absl::string_view name) {
  for (const StepSchedule::Kind kind : {StepSchedule::Kind::kMultistep, StepSchedule::Kind::kCosine,
                                        StepSchedule::Kind::kPolynomial})
    if (name == StepScheduleName(kind)) return kind;
  return absl::InvalidArgumentError(absl::StrCat(
      "no schedule named \"", name, "\"; there are multistep, cosine_annealing, polynomial"));
}

absl::Status Validate(const StepSchedule& schedule) {
  RETURN_IF_ERROR(Demand(schedule.base > 0 && std::isfinite(schedule.base),
                         "the learning rate must be positive", schedule.base));
  RETURN_IF_ERROR(Demand(schedule.warmup_steps >= 0, "warm-up steps must not be negative",
                         static_cast<double>(schedule.warmup_steps)));
  RETURN_IF_ERROR(Demand(schedule.warmup_factor >= 1 && std::isfinite(schedule.warmup_factor),
                         "the warm-up factor must be at least 1", schedule.warmup_factor));
  if (schedule.warmup_steps == 1 && schedule.warmup_factor == 1)
    return absl::InvalidArgumentError(
        "schedule: one step of warm-up leaves the rate at 0; use none, or two");
  RETURN_IF_ERROR(Demand(schedule.decay > 0 && std::isfinite(schedule.decay),
                         "the decay rate must be positive", schedule.decay));
  if (schedule.kind != StepSchedule::Kind::kMultistep) {
    RETURN_IF_ERROR(Demand(schedule.power > 0 && std::isfinite(schedule.power),
                           "the power must be positive", schedule.power));
    RETURN_IF_ERROR(Demand(schedule.period >= 1, "t_max must be at least 1",
                           static_cast<double>(schedule.period)));
    return Demand(schedule.least >= 0 && schedule.least <= schedule.base,
                  "eta_min must be in 0..learning rate", schedule.least);
  }
  if (!std::is_sorted(schedule.milestones.begin(), schedule.milestones.end()))
    return absl::InvalidArgumentError("schedule: milestones must ascend");
  return absl::OkStatus();
}

double LearningRateAtStep(const StepSchedule& schedule, int64_t s) {
  const int64_t warmup = schedule.warmup_steps;
  if (s < warmup) return WarmupRate(schedule, s);
  const double start = warmup > 0 ? WarmupRate(schedule, warmup - 1) : schedule.base;
  const int64_t since = warmup > 0 ? s - warmup : s - 1;
  if (schedule.kind == StepSchedule::Kind::kCosine) return CosineRate(schedule, start, since);
  if (schedule.kind == StepSchedule::Kind::kPolynomial)
    return PolynomialRate(schedule, start, since);
  const int64_t index = warmup > 0 ? s - warmup - 1 : s;
  const auto passed = std::count_if(schedule.milestones.begin(), schedule.milestones.end(),
                                    [index](int64_t milestone) { return milestone <= index; });
  return start * std::pow(schedule.decay, static_cast<double>(passed));
}

}  // namespace assay
