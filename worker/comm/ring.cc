#include "worker/comm/ring.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/comm/gmac.h"
#include "worker/comm/reduce.h"
#include "worker/comm/shared_reduction.h"

namespace assay::comm {
namespace {

// A ring segment travels in slices, so that a slice is added while the next ones are on their way
// and is still in the cache then: 4 times 128 KiB fit into a core's second-level cache (1 MiB).
constexpr size_t kSliceBytes = 128 * 1024;
constexpr size_t kSlicesInFlight = 4;

// A broadcast is pipelined along the ring in pieces of this size.
constexpr size_t kBroadcastSliceBytes = 256 * 1024;

// ---- Direct exchange -------------------------------------------------------------------------

// Sends `mine` to every peer and receives theirs into the peer's place in `all`; `mine`'s place is
// left alone. Peers are taken in an order that differs by rank, so that no rank is everyone's
// first.
absl::Status ExchangeWithAll(Collective* comm, std::span<const std::byte> mine,
                             std::span<std::byte> all, MonoTime deadline) {
  const int n = comm->world_size();
  const Tag tag = comm->NextTag();
  std::array<Request, 16> few;
  std::vector<Request> many;
  const size_t peer_count = static_cast<size_t>(n - 1);
  if (2 * peer_count > few.size()) many.resize(2 * peer_count);
  Request* const requests = many.empty() ? few.data() : many.data();
  for (int i = 1; i < n; ++i) {
    const int peer = (comm->rank() + n - i) % n;
    requests[i - 1] =
        comm->StartReceive(Envelope{.peer = peer, .tag = tag},
                           all.subspan(static_cast<size_t>(peer) * mine.size(), mine.size()));
  }
  for (int i = 1; i < n; ++i) {
    const int peer = (comm->rank() + i) % n;
    requests[static_cast<int>(peer_count) + i - 1] =
        comm->StartSend(Envelope{.peer = peer, .tag = tag}, mine);
  }
  for (size_t i = 0; i < 2 * peer_count; ++i)
    RETURN_IF_ERROR(comm->Wait(requests[i], deadline));
  return absl::OkStatus();
}

template <typename T>
absl::Status DirectAllReduce(Collective* comm, std::span<T> values, Reduce reduce,
                             MonoTime deadline) {
  const size_t n = static_cast<size_t>(comm->world_size());
  const std::span<std::byte> all = comm->Scratch(values.size_bytes() * n);
  const size_t own_offset = static_cast<size_t>(comm->rank()) * values.size_bytes();
  std::memcpy(all.data() + own_offset, values.data(), values.size_bytes());
  RETURN_IF_ERROR(ExchangeWithAll(comm, std::as_bytes(values), all, deadline));

  std::memcpy(values.data(), all.data(), values.size_bytes());
  const T* const terms = reinterpret_cast<const T*>(all.data());
  for (size_t rank = 1; rank < n; ++rank) {
    AddTo<T>(values, std::span<const T>(terms + rank * values.size(), values.size()));
  }
  if (reduce == Reduce::kMean) DivideBy(values, static_cast<T>(n));
  return absl::OkStatus();
}

// ---- Ring --------------------------------------------------------------------------------------

// One ring all-reduce. With n ranks there are 2(n-1) steps. In step t, rank r sends segment r-t to
// rank r+1 and receives segment r-t-1 from rank r-1 (modulo n): first n-1 steps that add what
// arrives (reduce-scatter), then n-1 steps that keep it (all-gather). What is received in a step is
// sent in the next. Every segment has the same number of slices K, so slice j of the whole sequence
// is slice j mod K of step j/K, and may be sent once slice j-K has been received.
//
// A slice is overwritten by its final value only after the peers have added it, and so only after
// its own send was read: sends need no wait for that, only for their slots.
template <typename T>
class Ring {
 public:
  Ring(Collective* comm, std::span<T> values, Reduce reduce)
      : comm_(comm),
        values_(values),
        reduce_(reduce),
        tag_(comm->NextTag()),
        n_(static_cast<size_t>(comm->world_size())),
        rank_(static_cast<size_t>(comm->rank())),
        slices_per_segment_(SliceCount(values.size(), n_)),
        slice_count_(2 * (n_ - 1) * slices_per_segment_),
        window_(std::min(kSlicesInFlight, slices_per_segment_)),
        scratch_(comm->Scratch(window_ * kSliceBytes)) {}

  absl::Status Run(MonoTime deadline) {
    for (size_t j = 0; j < window_; ++j)
      StartReceive(j);
    for (size_t j = 0; j + 1 < window_; ++j)
      StartSend(j);
    for (size_t j = 0; j < slice_count_; ++j) {
      if (j + window_ <= slice_count_) {
        RETURN_IF_ERROR(FinishSend(j + window_ - 1, deadline));
        StartSend(j + window_ - 1);
      }
      RETURN_IF_ERROR(comm_->Wait(receives_[j % window_], deadline));
      Consume(j);
      if (j + window_ < slice_count_) StartReceive(j + window_);
    }
    for (size_t i = 0; i < window_; ++i)
      RETURN_IF_ERROR(comm_->Wait(sends_[i], deadline));
    return absl::OkStatus();
  }

 private:
  static size_t SliceCount(size_t size, size_t n) {
    const size_t segment_size_max = (size + n - 1) / n;
    return std::max<size_t>(1, (segment_size_max * sizeof(T) + kSliceBytes - 1) / kSliceBytes);
  }

  size_t StepOf(size_t j) const { return j / slices_per_segment_; }
  bool IsAdded(size_t j) const { return StepOf(j) < n_ - 1; }

  // Slice j of the sequence, within the segment that is `behind` steps behind this rank's.
  std::span<T> Slice(size_t j, size_t behind) const {
    const size_t segment = (rank_ + 2 * n_ - behind) % n_;
    const Part in_all = PartOf(values_.size(), segment, n_);
    const Part part =
        PartOf(in_all.end - in_all.begin, j % slices_per_segment_, slices_per_segment_);
    return values_.subspan(in_all.begin + part.begin, part.end - part.begin);
  }
  std::span<T> Sent(size_t j) const { return Slice(j, StepOf(j)); }
  std::span<T> Received(size_t j) const { return Slice(j, StepOf(j) + 1); }

  std::span<T> Landing(size_t j) const {
    T* const begin = reinterpret_cast<T*>(scratch_.data() + (j % window_) * kSliceBytes);
    return std::span<T>(begin, Received(j).size());
  }

  void StartReceive(size_t j) {
    const int from = static_cast<int>((rank_ + n_ - 1) % n_);
    const std::span<T> target = IsAdded(j) ? Landing(j) : Received(j);
    receives_[j % window_] =
        comm_->StartReceive(Envelope{.peer = from, .tag = tag_}, std::as_writable_bytes(target));
  }

  void StartSend(size_t j) {
    const int to = static_cast<int>((rank_ + 1) % n_);
    sends_[j % window_] =
        comm_->StartSend(Envelope{.peer = to, .tag = tag_}, std::as_bytes(Sent(j)));
  }

  // Frees the slot that send `j` will use.
  absl::Status FinishSend(size_t j, MonoTime deadline) {
    const Request earlier = sends_[j % window_];
    sends_[j % window_] = Request{};
    return comm_->Wait(earlier, deadline);
  }

  void Consume(size_t j) {
    if (!IsAdded(j)) return;
    AddTo<T>(Received(j), Landing(j));
    const bool is_complete = StepOf(j) == n_ - 2;
    if (is_complete && reduce_ == Reduce::kMean) DivideBy(Received(j), static_cast<T>(n_));
  }

  Collective* const comm_;
  const std::span<T> values_;
  const Reduce reduce_;
  const Tag tag_;
  const size_t n_;
  const size_t rank_;
  const size_t slices_per_segment_;
  const size_t slice_count_;
  const size_t window_;
  const std::span<std::byte> scratch_;
  std::array<Request, kSlicesInFlight> receives_;
  std::array<Request, kSlicesInFlight> sends_;
};

template <typename T>
absl::Status AllReduce(Collective* comm, std::span<T> values, Reduce reduce, MonoTime deadline) {
  if (comm->world_size() == 1) return comm->failure();
  if (values.empty()) return comm->failure();
  const Operation operation(comm, values.size_bytes());
  if (SharedArea* const area = comm->shared_area(); area != nullptr)
    return ReduceShared(comm, area, values, reduce, deadline);
  if (values.size_bytes() <= kDirectBytesMax) {
    return DirectAllReduce(comm, values, reduce, deadline);
  }
  return Ring<T>(comm, values, reduce).Run(deadline);
}

}  // namespace

absl::Status AllReduceSum(Collective* comm, std::span<float> values, MonoTime deadline) {
  return AllReduce(comm, values, Reduce::kSum, deadline);
}

absl::Status AllReduceSum(Collective* comm, std::span<double> values, MonoTime deadline) {
  return AllReduce(comm, values, Reduce::kSum, deadline);
}

absl::Status AllReduceMean(Collective* comm, std::span<float> values, MonoTime deadline) {
  return AllReduce(comm, values, Reduce::kMean, deadline);
}

absl::Status AllReduceMean(Collective* comm, std::span<double> values, MonoTime deadline) {
  return AllReduce(comm, values, Reduce::kMean, deadline);
}

absl::Status AllGather(Collective* comm, std::span<const std::byte> mine, std::span<std::byte> all,
                       MonoTime deadline) {
  const size_t n = static_cast<size_t>(comm->world_size());
  CHECK(all.size() == n * mine.size()) << "all=" << all.size() << " mine=" << mine.size();
  if (!mine.empty()) {
    std::memcpy(all.data() + static_cast<size_t>(comm->rank()) * mine.size(), mine.data(),
                mine.size());
  }
  if (n == 1) return comm->failure();
  const Operation operation(comm, all.size());
  return ExchangeWithAll(comm, mine, all, deadline);
}

absl::Status BroadcastFromZero(Collective* comm, std::span<std::byte> bytes, MonoTime deadline) {
  const int n = comm->world_size();
  if (n == 1 || bytes.empty()) return comm->failure();
  const Operation operation(comm, bytes.size());
  // Along the ring: each rank passes a slice on while it waits for the next.
  const Tag tag = comm->NextTag();
  const bool has_next = comm->rank() + 1 < n;
  Request sending;
  for (size_t begin = 0; begin < bytes.size(); begin += kBroadcastSliceBytes) {
    const std::span<std::byte> slice =
        bytes.subspan(begin, std::min(kBroadcastSliceBytes, bytes.size() - begin));
    if (comm->rank() > 0) {
      RETURN_IF_ERROR(
          Receive(comm, Envelope{.peer = comm->rank() - 1, .tag = tag}, slice, deadline));
    }
    if (!has_next) continue;
    RETURN_IF_ERROR(comm->Wait(sending, deadline));
    sending = comm->StartSend(Envelope{.peer = comm->rank() + 1, .tag = tag}, slice);
  }
  return comm->Wait(sending, deadline);
}

absl::Status Barrier(Collective* comm, MonoTime deadline) {
  if (comm->world_size() == 1) return comm->failure();
  const Operation operation(comm, 0);
  return ExchangeWithAll(comm, {}, {}, deadline);
}

namespace {}  // namespace

absl::Status AgreeSameBytes(Collective* comm, absl::string_view what,
                            std::span<const std::byte> bytes, MonoTime deadline) {
  if (comm->world_size() == 1) return comm->failure();
  const Mac mine = DigestOf(bytes);
  std::vector<Mac> all(static_cast<size_t>(comm->world_size()));
  RETURN_IF_ERROR(AllGather(comm, mine, std::as_writable_bytes(std::span<Mac>(all)), deadline));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("the ranks disagree about %s: rank %d has others than rank 0", what, rank));
  }
  return absl::OkStatus();
}

}  // namespace assay::comm
