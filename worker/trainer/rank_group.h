// Consecutive ranks that normalise their batches together.

#ifndef WORKER_TRAINER_RANK_GROUP_H_
#define WORKER_TRAINER_RANK_GROUP_H_

#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/engine/layer.h"
#include "worker/engine/rank_average.h"

namespace assay {

// Replaces each number by its mean over the `size` consecutive ranks to which this rank belongs,
// added in the order of the ranks, so that all end with the same bits. All ranks of the world call
// it equally often. Errors: see Collective::Wait.
absl::Status AverageOverGroup(comm::Collective* comm, int size, std::span<float> values,
                              MonoTime deadline);

// Not thread-safe. A rank that is gone ends the process with ExitCode::kCommLost, because a layer
// has no way to return an error in the middle of a step.
class RankGroup : public GroupMean {
 public:
  // `size` divides the world. `deadline` tells until when the next exchange may take.
  RankGroup(comm::Collective* comm, int size, std::function<MonoTime()> deadline);

  // From now on the ranks' devices, which have joined with groups of this size, take the means.
  // `average` must outlive its use.
  void UseDevice(RankAverage* average) { device_ = average; }
  bool is_on_device() const override { return device_ != nullptr; }

  void Average(const Tensor& values) override;
  int size() const override { return size_; }

 private:
  comm::Collective* const comm_;
  const int size_;
  const std::function<MonoTime()> deadline_;
  RankAverage* device_ = nullptr;  // null: the host takes the means
};

}  // namespace assay

#endif  // WORKER_TRAINER_RANK_GROUP_H_
