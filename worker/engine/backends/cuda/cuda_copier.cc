#include "worker/engine/backends/cuda/cuda_copier.h"

#include <utility>

#include "common/log.h"
#include "worker/engine/backends/cuda/fault.h"

namespace assay::cuda {
namespace {

// Smaller memory is copied by the driver before the call returns, as fast as it can be pinned.
constexpr size_t kLeastPinned = size_t{64} << 10;

}  // namespace

absl::Status CudaCopier::CopyAsync(const void* host, const Tensor& dst) {
  return ToStatus("prefetch a batch", device_->CopyAsync(host, dst.data, dst.bytes()));
}

void CudaCopier::MakeWorkWaitForCopies() {
  Must("flush", recorder_->Flush());
  Must("make calls wait for copies", device_->MakeCallsWaitForCopies());
}

void CudaCopier::MakeCopiesWaitForWork() {
  Must("flush", recorder_->Flush());
  Must("make copies wait for calls", device_->MakeCopiesWaitForCalls());
}

void CudaCopier::Await() {
  Must("wait for a batch", device_->WaitForCopies());
}

std::shared_ptr<void> CudaCopier::Pin(std::span<std::byte> host) {
  if (host.size() < kLeastPinned) return nullptr;
  const Fault fault = device_->Pin(host.data(), host.size());
  if (!fault.ok()) {
    if (!std::exchange(has_said_pageable_, true))
      LOG(WARNING) << "bytes=" << host.size() << " of batches are not pinned, which makes copying "
                   << "them to the GPU slower: " << fault.text;
    return nullptr;
  }
  // Shared by nobody: it is the deleter that counts.
  return {host.data(), [device = device_](void* memory) {
            Must("wait for a batch", device->WaitForCopies());
            Must("unpin memory", device->Unpin(memory));
          }};
}

}  // namespace assay::cuda
