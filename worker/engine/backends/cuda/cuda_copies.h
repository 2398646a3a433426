// Batches that travel to the GPU beside its work.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_COPIES_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_COPIES_H_

#include <cstddef>
#include <memory>
#include <span>

#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/recorder.h"
#include "worker/engine/side_copies.h"

namespace assay::cuda {

// Part of a CudaBackend, whose device and recorder it uses.
class CudaCopies : public SideCopies {
 public:
  CudaCopies(Device* device, Recorder* recorder) : device_(device), recorder_(recorder) {}

  absl::Status Send(const void* host, const Tensor& dst) override;
  void Receive() override;
  void Hold() override;
  void Await() override;
  std::shared_ptr<void> Pin(std::span<std::byte> host) override;

 private:
  Device* const device_;
  Recorder* const recorder_;
  bool has_said_pageable_ = false;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_COPIES_H_
