// Averages and messages between GPUs by NCCL, which is loaded when the first run of several ranks
// asks for it.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEVICE_NCCL_RANKS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEVICE_NCCL_RANKS_H_

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// One rank's part of a run. Not thread-safe.
//
// The communicators do not block: NCCL works on a thread of its own, and each call here waits for
// it no longer than the timeout, so that a rank that is gone or stuck ends in a fault.
class NcclRanks {
 public:
  virtual ~NcclRanks() = default;

  // kAbsent: no libnccl.so.2, one older than 2.18, or this build was made without NCCL's header.
  static Fault MakeId(std::string* id);
  // Blocks until all ranks have joined, or until the timeout. The calling thread's GPU is the
  // rank's.
  static Fault Join(const JoinOptions& options, std::unique_ptr<NcclRanks>* ranks);

  // Starts the average on `stream`, in place.
  virtual Fault Average(const AverageCall& call, cudaStream_t stream) = 0;
  // Starts to send and receive on `stream`.
  virtual Fault Exchange(const ExchangeCall& call, cudaStream_t stream) = 0;
  // What went wrong since; must be asked while waiting, because work that waits for a rank that is
  // gone never ends.
  virtual Fault Health() = 0;
  // Gives up the work under way, so that the device can be waited for. Only destruction may follow.
  virtual void Abort() = 0;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEVICE_NCCL_RANKS_H_
