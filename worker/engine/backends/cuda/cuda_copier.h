// Batches that are prefetched on a copy stream.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_COPIER_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_COPIER_H_

#include <cstddef>
#include <memory>
#include <span>

#include "worker/engine/async_copier.h"
#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/recorder.h"

namespace assay::cuda {

// Part of a CudaBackend, whose device and recorder it uses.
class CudaCopier : public AsyncCopier {
 public:
  CudaCopier(Device* device, Recorder* recorder) : device_(device), recorder_(recorder) {}

  absl::Status CopyAsync(const void* host, const Tensor& dst) override;
  void MakeWorkWaitForCopies() override;
  void MakeCopiesWaitForWork() override;
  void Await() override;
  std::shared_ptr<void> Pin(std::span<std::byte> host) override;

 private:
  Device* const device_;
  Recorder* const recorder_;
  bool has_said_pageable_ = false;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_COPIER_H_
