#include "worker/engine/backends/cuda/cuda_copies.h"

#include <utility>

#include "common/log.h"
#include "worker/engine/backends/cuda/fault.h"

namespace assay::cuda {
namespace {

// Smaller memory is copied by the driver before the call returns, as fast as it can be pinned.
constexpr size_t kLeastPinned = size_t{64} << 10;

}  // namespace

absl::Status CudaCopies::Send(const void* host, const Tensor& dst) {
  return ToStatus("send a batch", device_->Send(host, dst.data, dst.bytes()));
}

void CudaCopies::Receive() {
  Must("flush", recorder_->Flush());
  Must("receive a batch", device_->ReceiveSent());
}

void CudaCopies::Hold() {
  Must("flush", recorder_->Flush());
  Must("hold batches back", device_->HoldSends());
}

void CudaCopies::Await() {
  Must("wait for a batch", device_->WaitForSent());
}

std::shared_ptr<void> CudaCopies::Pin(std::span<std::byte> host) {
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
            Must("wait for a batch", device->WaitForSent());
            Must("unpin memory", device->Unpin(memory));
          }};
}

}  // namespace assay::cuda
