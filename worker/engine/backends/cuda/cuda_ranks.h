// Averages over ranks and messages between them by the GPUs themselves.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_RANKS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_RANKS_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/recorder.h"
#include "worker/engine/rank_average.h"

namespace assay::cuda {

// Part of a CudaBackend, whose device and recorder it uses.
//
// What ranks say to each other is in one order on the device, whatever the stream: averages that
// were started aside are joined before anything else that waits for other ranks. All ranks make the
// same calls, so none can wait for one that waits for it.
class CudaRanks : public RankAverage {
 public:
  CudaRanks(Device* device, Recorder* recorder) : device_(device), recorder_(recorder) {}

  absl::StatusOr<std::string> MakeId() override;
  absl::Status Join(const RanksToJoin& ranks) override;
  bool has_joined() const override { return has_joined_; }
  void Average(const Tensor& values, RankScope scope) override;
  void Start(const Tensor& values) override;
  void Finish() override;
  void Exchange(std::span<const RankTransfer> transfers) override;
  RankTraffic traffic() const override { return traffic_; }

 private:
  void Issue(absl::string_view what, const Call& call);
  void Count(size_t bytes);

  Device* const device_;
  Recorder* const recorder_;
  bool has_joined_ = false;
  bool is_aside_ = false;  // averages were started and not finished
  RankTraffic traffic_;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_RANKS_H_
