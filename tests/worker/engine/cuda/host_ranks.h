// What NCCL does between GPUs, between threads of this process or in another world: for HostDevice.

#ifndef TESTS_WORKER_ENGINE_CUDA_HOST_RANKS_H_
#define TESTS_WORKER_ENGINE_CUDA_HOST_RANKS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// What the ranks of one run share. False: nothing came until the deadline, or something else.
class HostWorld {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  using Numbers = std::vector<float>;
  // An average: whether it is a group's, the first of its ranks, and how many they had before.
  using Key = std::tuple<bool, int, int64_t>;

  virtual ~HostWorld() = default;
  virtual bool Join(int size, Deadline deadline) = 0;
  // Takes this rank's numbers and waits for the others'.
  virtual bool Mean(const Key& key, int size, int rank, Numbers* numbers, Deadline deadline) = 0;
  virtual void Send(int from, int to, Numbers numbers) = 0;
  virtual bool Receive(int from, int to, Numbers* numbers, Deadline deadline) = 0;
};

// One rank's part of a run. Means are sums in double in the order of the ranks. Used by one thread.
class HostRanks {
 public:
  // Different every time.
  static std::string MakeId();
  // Of ranks that are not threads of this process; before Join.
  static void AddWorld(const std::string& id, std::shared_ptr<HostWorld> world);
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
