#include "worker/comm/collective.h"

#include <cstddef>
#include <new>
#include <span>
#include <utility>

#include "absl/status/status.h"

#include "common/clock.h"
#include "common/log.h"

namespace assay::comm {
namespace {

constexpr std::align_val_t kScratchAlignment{64};

}  // namespace

void Collective::FreeAligned::operator()(std::byte* bytes) const {
  ::operator delete[](bytes, kScratchAlignment);
}

Collective::Collective(int rank, int world_size) : rank_(rank), world_size_(world_size) {
  CHECK(world_size >= 1 && world_size <= kMaxWorldSize) << "world_size=" << world_size;
  CHECK(rank >= 0 && rank < world_size) << "rank=" << rank << " world_size=" << world_size;
}

Request Collective::StartSend(Envelope to, std::span<const std::byte> bytes) {
  CheckPeer(to.peer);
  if (!failure_.ok()) return Request{};
  return DoStartSend(to, bytes);
}

Request Collective::StartReceive(Envelope from, std::span<std::byte> bytes) {
  CheckPeer(from.peer);
  if (!failure_.ok()) return Request{};
  return DoStartReceive(from, bytes);
}

absl::Status Collective::Wait(Request request, MonoTime deadline) {
  if (!failure_.ok()) return failure_;
  if (request.slot < 0) return absl::OkStatus();
  return Latch(DoWait(request, deadline));
}

absl::Status Collective::Await(absl::FunctionRef<bool()> is_there, int peer, MonoTime deadline) {
  if (!failure_.ok()) return failure_;
  return Latch(DoAwait(is_there, peer, deadline));
}

absl::Status Collective::DoAwait(absl::FunctionRef<bool()> /*is_there*/, int /*peer*/,
                                 MonoTime /*deadline*/) {
  return absl::InternalError("these ranks share no memory");
}

absl::Status Collective::Close(MonoTime deadline) {
  if (!failure_.ok()) return failure_;
  if (is_closed_) return absl::OkStatus();
  is_closed_ = true;
  return Latch(DoClose(deadline));
}

Tag Collective::NextTag() {
  return kFirstCollectiveTag | operation_count_++;
}

std::span<std::byte> Collective::Scratch(size_t size) {
  if (size > scratch_size_) {
    scratch_.reset();
    scratch_.reset(static_cast<std::byte*>(::operator new[](size, kScratchAlignment)));
    scratch_size_ = size;
  }
  return {scratch_.get(), size};
}

absl::Status Collective::Latch(absl::Status status) {
  if (status.ok()) return status;
  DoAbort();
  failure_ = std::move(status);
  return failure_;
}

void Collective::CheckPeer(int peer) const {
  CHECK(peer >= 0 && peer < world_size_ && peer != rank_)
      << "peer=" << peer << " rank=" << rank_ << " world_size=" << world_size_;
  CHECK(!is_closed_) << "message after Close";
}

absl::Status Send(Collective* comm, Envelope to, std::span<const std::byte> bytes,
                  MonoTime deadline) {
  return comm->Wait(comm->StartSend(to, bytes), deadline);
}

absl::Status Receive(Collective* comm, Envelope from, std::span<std::byte> bytes,
                     MonoTime deadline) {
  return comm->Wait(comm->StartReceive(from, bytes), deadline);
}

}  // namespace assay::comm
