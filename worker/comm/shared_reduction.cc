#include "worker/comm/shared_reduction.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "absl/strings/str_format.h"

#include "common/status.h"

namespace assay::comm {
namespace {

// Sums are made in pieces of this size, which stay in the first-level cache from term to term.
constexpr size_t kBlockBytes = 8 * 1024;

// What is tried to choose stores: vectors of a middle size, each way so often. The fastest counts.
constexpr size_t kTrialElements = 64 * 1024;
constexpr int kTrials = 6;

// Copies past the caches to `target`, which is aligned to 16 bytes. How much was copied.
size_t StreamCopy(std::span<const std::byte> source, std::byte* target) {
  size_t done = 0;
#ifdef __SSE2__
  for (; done + sizeof(__m128i) <= source.size(); done += sizeof(__m128i)) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source.data() + done));
    _mm_stream_si128(reinterpret_cast<__m128i*>(target + done), words);
  }
  _mm_sfence();  // before whoever says that it is there
#endif
  return done;
}

// One reduction. The vector is cut as the ring's: part s of it, which rank s adds, and each part
// into slices; step j has slice j of every part. A rank
//   enters a step: its terms of the others' parts go into its slot;
//   reduces it, once all have entered: its own part, whose sums go into its slot, too;
//   takes the others' sums, once all have reduced.
// Two slots let it enter step j + 1 before all have reduced step j. It enters a step only when all
// have reduced the one before the last, which was in the same slot; and who enters step j + 2 has
// taken the sums of step j, so these may be overwritten when all have.
template <typename T>
class SharedReduction {
 public:
  SharedReduction(Collective* comm, SharedArea* area, std::span<T> values, Reduce reduce,
                  MonoTime deadline)
      : comm_(comm),
        area_(*area),
        values_(values),
        reduce_(reduce),
        deadline_(deadline),
        n_(comm->world_size()),
        rank_(comm->rank()),
        part_room_(SharedArea::kSlotBytes / static_cast<size_t>(n_) / kAlignment * kAlignment),
        slice_count_(SliceCount()),
        first_step_(area->step_count + 1) {}

  // Every rank adds all terms, in the order of the ranks.
  absl::Status RunDirect() {
    area_.step_count += 1;
    RETURN_IF_ERROR(AwaitRoom(first_step_));
    std::memcpy(DirectTerms(rank_), values_.data(), values_.size_bytes());
    Entered(first_step_, values_.size_bytes());
    RETURN_IF_ERROR(AwaitEntered(first_step_));
    std::memcpy(values_.data(), DirectTerms(0), values_.size_bytes());
    for (int rank = 1; rank < n_; ++rank)
      AddTo<T>(values_, {reinterpret_cast<const T*>(DirectTerms(rank)), values_.size()});
    if (reduce_ == Reduce::kMean) DivideBy(values_, static_cast<T>(n_));
    area_.reduced_step = first_step_;
    return absl::OkStatus();
  }

  absl::Status RunInSlices() {
    area_.step_count += slice_count_;
    RETURN_IF_ERROR(Enter(0));
    for (size_t j = 0; j < slice_count_; ++j) {
      const uint64_t step = first_step_ + j;
      if (j + 1 < slice_count_) RETURN_IF_ERROR(Enter(j + 1));
      RETURN_IF_ERROR(AwaitEntered(step));
      AddOwnPart(j);
      area_.reduced_step = step;
      area_.line(rank_).reduced.store(step, std::memory_order_release);
      RETURN_IF_ERROR(AwaitAll(&SharedArea::Line::reduced, step));
      TakeSums(j);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kAlignment = 64;

  size_t SliceCount() const {
    const size_t part_max =
        (values_.size() + static_cast<size_t>(n_) - 1) / static_cast<size_t>(n_);
    return std::max<size_t>(1, (part_max * sizeof(T) + part_room_ - 1) / part_room_);
  }

  // Slice j of part s.
  std::span<T> Slice(size_t j, int s) const {
    const Part part = PartOf(values_.size(), static_cast<size_t>(s), static_cast<size_t>(n_));
    const Part slice = PartOf(part.size(), j, slice_count_);
    return values_.subspan(part.begin + slice.begin, slice.size());
  }
  // Where `rank` keeps its terms of part s, or as the part's own rank the sums.
  std::byte* PlaceOf(int rank, size_t j, int s) const {
    return area_.Slot(rank, first_step_ + j).data() + static_cast<size_t>(s) * part_room_;
  }

  std::byte* DirectTerms(int rank) const {
    SharedArea::Line& line = area_.line(rank);
    return values_.size_bytes() <= line.terms[0].size() ? line.terms[first_step_ % 2].data()
                                                        : area_.Slot(rank, first_step_).data();
  }

  absl::Status Enter(size_t j) {
    const uint64_t step = first_step_ + j;
    RETURN_IF_ERROR(AwaitRoom(step));
    size_t bytes = 0;
    for (int i = 1; i < n_; ++i) {
      const int s = (rank_ + i) % n_;
      const std::span<T> slice = Slice(j, s);
      Store(std::as_bytes(slice), PlaceOf(rank_, j, s));
      bytes += slice.size_bytes();
    }
    Entered(step, bytes);
    return absl::OkStatus();
  }

  void Entered(uint64_t step, size_t bytes) {
    comm_->Shared(bytes);
    SharedArea::Line& line = area_.line(rank_);
    line.bytes[step % 2].store(values_.size_bytes(), std::memory_order_relaxed);
    line.reduced.store(area_.reduced_step, std::memory_order_release);
    line.entered.store(step, std::memory_order_release);
  }

  // Into a slot, which other cores have read and will read.
  void Store(std::span<const std::byte> source, std::byte* target) const {
    const size_t done = area_.is_past_caches ? StreamCopy(source, target) : 0;
    std::memcpy(target + done, source.data() + done, source.size() - done);
  }

  void AddOwnPart(size_t j) {
    const std::span<T> own = Slice(j, rank_);
    std::byte* const sums = PlaceOf(rank_, j, rank_);
    constexpr size_t kBlock = kBlockBytes / sizeof(T);
    for (size_t begin = 0; begin < own.size(); begin += kBlock) {
      const size_t size = std::min(kBlock, own.size() - begin);
      const std::span<T> block = own.subspan(begin, size);
      for (int i = 1; i < n_; ++i)
        AddTo<T>(block,
                 {reinterpret_cast<const T*>(PlaceOf((rank_ + i) % n_, j, rank_)) + begin, size});
      if (reduce_ == Reduce::kMean) DivideBy(block, static_cast<T>(n_));
      Store(std::as_bytes(block), sums + begin * sizeof(T));
    }
    comm_->Shared(own.size_bytes());
  }

  void TakeSums(size_t j) {
    for (int i = 1; i < n_; ++i) {
      const int s = (rank_ + i) % n_;
      const std::span<T> slice = Slice(j, s);
      std::memcpy(slice.data(), PlaceOf(s, j, s), slice.size_bytes());
    }
  }

  // Until all have `counter` at `step`.
  absl::Status AwaitAll(std::atomic<uint64_t> SharedArea::Line::*counter, uint64_t step) {
    for (int i = 1; i < n_; ++i) {
      const int peer = (rank_ + i) % n_;
      const std::atomic<uint64_t>& reached = area_.line(peer).*counter;
      if (reached.load(std::memory_order_acquire) >= step) continue;
      RETURN_IF_ERROR(comm_->Await([&] { return reached.load(std::memory_order_acquire) >= step; },
                                   peer, deadline_));
    }
    return absl::OkStatus();
  }

  // Until nobody needs the terms of the step before the last, which are in the same slot.
  absl::Status AwaitRoom(uint64_t step) {
    if (step <= 2) return absl::OkStatus();
    return AwaitAll(&SharedArea::Line::reduced, step - 2);
  }

  absl::Status AwaitEntered(uint64_t step) {
    RETURN_IF_ERROR(AwaitAll(&SharedArea::Line::entered, step));
    for (int peer = 0; peer < n_; ++peer) {
      const uint64_t bytes = area_.line(peer).bytes[step % 2].load(std::memory_order_relaxed);
      if (bytes != values_.size_bytes()) return comm_->Fail(OtherSize(peer, bytes));
    }
    return absl::OkStatus();
  }

  absl::Status OtherSize(int peer, uint64_t bytes) const {
    return absl::DataLossError(absl::StrFormat(
        "%s reduces a vector of %d bytes where %d are expected: the ranks disagree about the "
        "operation",
        comm_->Describe(peer), bytes, values_.size_bytes()));
  }

  Collective* const comm_;
  SharedArea& area_;
  const std::span<T> values_;
  const Reduce reduce_;
  const MonoTime deadline_;
  const int n_;
  const int rank_;
  const size_t part_room_;  // bytes of a slot for each part
  const size_t slice_count_;
  const uint64_t first_step_;
};

template <typename T>
absl::Status Run(Collective* comm, SharedArea* area, std::span<T> values, Reduce reduce,
                 MonoTime deadline) {
  if (!comm->failure().ok()) return comm->failure();
  SharedReduction<T> reduction(comm, area, values, reduce, deadline);
  return values.size_bytes() <= kDirectBytesMax ? reduction.RunDirect() : reduction.RunInSlices();
}

}  // namespace

absl::Status ChooseStores(Collective* comm, SharedArea* area, const Clock& clock,
                          MonoTime deadline) {
  std::vector<float> values(kTrialElements);
  std::array<double, 2> seconds = {std::numeric_limits<double>::max(),
                                   std::numeric_limits<double>::max()};
  for (int trial = 0; trial < 2 * kTrials; ++trial) {
    area->is_past_caches = trial % 2 == 1;
    const MonoTime begin = clock.Mono();
    RETURN_IF_ERROR(ReduceShared(comm, area, std::span<float>(values), Reduce::kSum, deadline));
    double& best = seconds[area->is_past_caches ? 1 : 0];
    best = std::min(best, absl::ToDoubleSeconds(clock.Mono() - begin));
  }
  RETURN_IF_ERROR(ReduceShared(comm, area, std::span<double>(seconds), Reduce::kMean, deadline));
  area->is_past_caches = seconds[1] < seconds[0];
  return absl::OkStatus();
}

absl::Status ReduceShared(Collective* comm, SharedArea* area, std::span<float> values,
                          Reduce reduce, MonoTime deadline) {
  return Run(comm, area, values, reduce, deadline);
}

absl::Status ReduceShared(Collective* comm, SharedArea* area, std::span<double> values,
                          Reduce reduce, MonoTime deadline) {
  return Run(comm, area, values, reduce, deadline);
}

}  // namespace assay::comm
