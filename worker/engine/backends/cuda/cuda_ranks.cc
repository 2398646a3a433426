#include "worker/engine/backends/cuda/cuda_ranks.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/fault.h"

namespace assay::cuda {

absl::StatusOr<std::string> CudaRanks::MakeId() {
  std::string id;
  RETURN_IF_ERROR(ToStatus("average over ranks", device_->MakeRanksId(&id)));
  return id;
}

absl::Status CudaRanks::Join(const std::string& id, int rank, int size) {
  CHECK(!has_joined_ && rank >= 0 && rank < size) << "rank=" << rank << " size=" << size;
  RETURN_IF_ERROR(ToStatus("average over ranks", device_->JoinRanks(id, rank, size)));
  has_joined_ = true;
  return absl::OkStatus();
}

void CudaRanks::Average(const Tensor& values) {
  CHECK(has_joined_);
  Must("average over ranks",
       recorder_->Issue(AverageCall{.values = values.As<float>(), .count = values.elements()}));
}

}  // namespace assay::cuda
