// The learning rate of an optimizer step: DeepCAM's schedules, exactly as its reference steps them,
// and a polynomial decay, which the reference lacks. Pure.
//
// Source: mlcommons/hpc, deepcam, utils/schedulers.py and PyTorch's lr_scheduler. The reference
// builds its warm-up classes with last_epoch = 0, so the first step already uses index 1. Steps are
// counted from 1 here.

#ifndef WORKER_ENGINE_STEP_SCHEDULE_H_
#define WORKER_ENGINE_STEP_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay {

struct StepSchedule {
  enum class Kind { kMultistep, kCosine, kPolynomial };

  Kind kind = Kind::kMultistep;
  double base = 1e-3;
  int64_t warmup_steps = 0;         // W
  double warmup_factor = 1;         // f: with 1 warm-up starts at 0, above it starts at the base
  std::vector<int64_t> milestones;  // of kMultistep, ascending
  double decay = 1;                 // gamma: of kMultistep, at each milestone
  int64_t period = 1;               // T: of the others, steps from base to `least`
  double least = 0;                 // eta: of the others
  double power = 1;                 // p: of kPolynomial; 1 is linear
};

// "multistep", "cosine_annealing", "polynomial".
absl::string_view StepScheduleName(StepSchedule::Kind kind);
// INVALID_ARGUMENT for any other text.
absl::StatusOr<StepSchedule::Kind> ParseStepSchedule(absl::string_view name);

// INVALID_ARGUMENT: a number out of range, milestones that do not ascend, or a warm-up of one step
// with factor 1, which would leave the rate at 0 for ever.
absl::Status Validate(const StepSchedule& schedule);

// Learning rate of 1-based optimizer step s.
//   Warm-up, s < W: base * s / W for f = 1, else base * (1 + (f - 1) * s / W). After it the rate
//   stays what it was at W - 1 (so never quite base), and from there
//   multistep: is multiplied by gamma for each milestone M with s >= M + W + 1 (without warm-up:
//     with s >= M);
//   cosine: with e = s - W (without warm-up: s - 1), falls for e <= T along
//     eta + (start - eta) * (1 + cos(pi e / T)) / 2, and for e > T follows the same curve from
//     base: it rises again, as PyTorch's;
//   polynomial: with the same e, is eta + (start - eta) * (1 - e / T)^p for e <= T, then eta.
double LearningRateAtStep(const StepSchedule& schedule, int64_t s);

}  // namespace assay

#endif  // WORKER_ENGINE_STEP_SCHEDULE_H_
