// One allocation per kind of memory: parameters, gradients, optimizer state, activations.
//
// Two phases: everybody reserves, then one Commit allocates and fills in every reserved Tensor.
// Nothing is allocated after the first step, so what a model needs is known before it starts.

#ifndef WORKER_ENGINE_ARENA_H_
#define WORKER_ENGINE_ARENA_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/backend.h"
#include "worker/engine/tensor.h"

namespace assay {

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

  // Allocates, zeroed. RESOURCE_EXHAUSTED: not enough memory.
  absl::Status Commit();

  // Bytes reserved so far.
  size_t bytes() const { return bytes_; }

  // The whole arena as one vector of `dtype`, in order of reservation. After Commit only.
  Tensor Flat(DType dtype) const;

 private:
  struct Slot {
    Tensor* tensor;
    size_t offset;
  };

  Backend* const backend_;
  const size_t alignment_;
  std::vector<Slot> slots_;
  size_t bytes_ = 0;
  void* data_ = nullptr;
};

}  // namespace assay

#endif  // WORKER_ENGINE_ARENA_H_
