// One allocation per kind of memory: parameters, gradients, optimizer state, activations.
//
// Two phases: everybody reserves, then one Commit allocates and fills in every reserved Tensor.
// Nothing is allocated after the first step, so what a model needs is known before it starts.
// Tensors that say when they are needed share memory with those whose lifetimes do not overlap
// theirs (activation memory reuse by liveness).

#ifndef WORKER_ENGINE_ARENA_H_
#define WORKER_ENGINE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/backend.h"
#include "worker/engine/tensor.h"

namespace assay {

// From the first to the last of the numbered time steps at which a tensor is written or read, both
// included. The caller says what a time step is.
struct Lifetime {
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  int64_t first = 0;
  int64_t last = kForever;

  bool Overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

// Of a tensor that is written anew after a time in which nobody needs it.
using Lifetimes = std::vector<Lifetime>;

// Owns memory of `backend`, which must outlive it. Not thread-safe.
class Arena {
 public:
  // Every tensor starts at a multiple of `alignment` bytes. With the size of an element the tensors
  // lie without gaps, so that the arena can be treated as one flat vector.
  Arena(Backend* backend, size_t alignment) : backend_(backend), alignment_(alignment) {}
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Sets `*tensor`'s shape and type now and its address at Commit. `tensor` must stay where it is
  // until then. Before Commit only.
  void Reserve(const Shape& shape, DType dtype, Tensor* tensor);
  // The same, in memory that tensors of other lifetimes overwrite: at one place in all of its own.
  void ReserveShared(const Shape& shape, DType dtype, Lifetimes lifetimes, Tensor* tensor);

  // Chooses where everything lies, without allocating: then it is known how many bytes Commit will
  // take. Nothing can be reserved afterwards.
  void Place();

  // Allocates, zeroed. RESOURCE_EXHAUSTED: not enough memory. With a committed `lender`, which must
  // outlive this one, shared tensors lie in the memory of its shared tensors if there is room:
  // whoever uses the one's has to be done with the other's.
  absl::Status Commit(const Arena* lender = nullptr);

  // Bytes of this arena's own, without what was lent. After Place or Commit only.
  size_t bytes() const { return bytes_ + (is_borrowing_ ? 0 : shared_bytes_); }
  // Bytes that hold all shared tensors. After Place or Commit only.
  size_t shared_bytes() const { return shared_bytes_; }

  // All but shared tensors as one vector of `dtype`, in order of reservation. After Commit only.
  Tensor Flat(DType dtype) const;

 private:
  struct Slot {
    Tensor* tensor;
    size_t offset;
    Lifetimes lifetimes;  // of shared ones
  };

  static bool Meet(const Slot& a, const Slot& b);
  size_t LowestFit(const Slot& slot, const std::vector<const Slot*>& placed) const;
  size_t Aligned(size_t offset) const {
    return (offset + alignment_ - 1) / alignment_ * alignment_;
  }

  Backend* const backend_;
  const size_t alignment_;
  std::vector<Slot> slots_, shared_slots_;
  size_t bytes_ = 0;
  size_t shared_bytes_ = 0;
  void* data_ = nullptr;
  void* shared_data_ = nullptr;
  bool is_borrowing_ = false;  // shared_data_ is the lender's
  bool is_placed_ = false;
  bool is_committed_ = false;
};

}  // namespace assay

#endif  // WORKER_ENGINE_ARENA_H_
