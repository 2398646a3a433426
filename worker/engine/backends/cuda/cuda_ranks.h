// Averages over ranks by the GPUs themselves.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_RANKS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_RANKS_H_

#include <string>

#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/recorder.h"
#include "worker/engine/rank_average.h"

namespace assay::cuda {

// Part of a CudaBackend, whose device and recorder it uses.
class CudaRanks : public RankAverage {
 public:
  CudaRanks(Device* device, Recorder* recorder) : device_(device), recorder_(recorder) {}

  absl::StatusOr<std::string> MakeId() override;
  absl::Status Join(const std::string& id, int rank, int size) override;
  bool has_joined() const override { return has_joined_; }
  void Average(const Tensor& values) override;

 private:
  Device* const device_;
  Recorder* const recorder_;
  bool has_joined_ = false;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_RANKS_H_
