// What NCCL does between GPUs, between threads of this process: for HostDevice.

#ifndef TESTS_WORKER_ENGINE_CUDA_HOST_RANKS_H_
#define TESTS_WORKER_ENGINE_CUDA_HOST_RANKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

class HostWorld;

// One rank's part of a run. Means are sums in double in the order of the ranks. Used by one thread.
class HostRanks {
 public:
  // Different every time.
  static std::string MakeId();
  // Waits for all ranks, each on a thread of its own.
  static Fault Join(const JoinOptions& options, std::unique_ptr<HostRanks>* ranks);

  Fault Average(const AverageCall& call);
  Fault Exchange(const ExchangeCall& call);

 private:
  HostRanks(const JoinOptions& options, std::shared_ptr<HostWorld> world)
      : options_(options), world_(std::move(world)) {}

  const JoinOptions options_;
  const std::shared_ptr<HostWorld> world_;
  std::map<bool, int64_t> averages_;  // so far; true: those of groups
};

}  // namespace assay::cuda

#endif  // TESTS_WORKER_ENGINE_CUDA_HOST_RANKS_H_
