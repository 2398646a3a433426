// The learning rate of an epoch: linear warm-up, then factors at boundaries, or a smooth decay.
// Pure.
//
// CosmoFlow reference, utils/optimizers.py: set at the begin of each epoch; decay factors are
// relative to the peak, not cumulative; boundary 32 first acts in 0-based epoch 33.

#ifndef WORKER_ENGINE_LR_SCHEDULE_H_
#define WORKER_ENGINE_LR_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace assay {

struct LrDecay {
  int64_t boundary_epoch = 0;  // acts in 0-based epochs greater than this
  double factor = 1;           // of the peak
};

// A decay by a little in each epoch, from the peak to a fraction of it: no part of the reference.
// With power 1 it is linear, as in the open entries of ABCI and Fugaku in MLPerf HPC v0.7.
struct LrFade {
  int64_t epochs = 0;        // from the end of warm-up to the end of the decay; 0: there is none
  double end_factor = 0.01;  // of the peak, from then on
  double power = 1;
};

struct LrSchedule {
  double base = 1e-3;  // unscaled; where warm-up starts
  double scale = 1;    // peak = base * scale
  int64_t warmup_epochs = 0;
  std::vector<LrDecay> decays;  // any order
  LrFade fade;                  // not with `decays`

  double peak() const { return base * scale; }
};

// INVALID_ARGUMENT: a number out of range, a boundary given twice, or boundaries beside a fade.
absl::Status Validate(const LrSchedule& schedule);

// Learning rate throughout 0-based `epoch`. Of the boundaries before `epoch` the largest counts. A
// fade over n epochs after w of warm-up: with part = max(0, 1 - (epoch - w) / n) it is
// peak * (end_factor + (1 - end_factor) * part^power).
double LearningRateAt(const LrSchedule& schedule, int64_t epoch);

}  // namespace assay

#endif  // WORKER_ENGINE_LR_SCHEDULE_H_
