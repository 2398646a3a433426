// The ranks of a spatial group as ranks of the run: group g has the ranks g * size and following.

#ifndef WORKER_TRAINER_SPATIAL_RANKS_H_
#define WORKER_TRAINER_SPATIAL_RANKS_H_

#include <functional>
#include <span>

#include "common/clock.h"
#include "worker/comm/collective.h"
#include "worker/engine/rank_average.h"
#include "worker/engine/spatial.h"

namespace assay {

// Not thread-safe. A failure stays in the Collective, which reports it again at every later call;
// this class drops it.
class SpatialRanks : public SpatialGroup {
 public:
  // `rank`: of this process in the run.
  SpatialRanks(const SpatialGrid& grid, int rank);

  // Before the first exchange. `comm` must outlive the last. `deadline`: by when an exchange that
  // begins now must be done.
  void Connect(comm::Collective* comm, std::function<MonoTime()> deadline);

  // From now on the ranks' devices, which have joined, exchange. `average` must outlive its use.
  void UseDevice(RankAverage* average) { device_ = average; }

  void Exchange(std::span<const Transfer> transfers) override;
  bool is_on_device() const override { return device_ != nullptr; }
  void ExchangeOnDevice(std::span<const TensorTransfer> transfers) override;

 private:
  const int first_rank_;
  comm::Collective* comm_ = nullptr;
  std::function<MonoTime()> deadline_;
  RankAverage* device_ = nullptr;  // null: through the host
};

}  // namespace assay

#endif  // WORKER_TRAINER_SPATIAL_RANKS_H_
