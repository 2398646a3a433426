// How layers share memory: each says when it works, and reserves tensors for as long as others need
// them (activation memory reuse by liveness, arena.h).

#ifndef WORKER_ENGINE_LAYER_MEMORY_H_
#define WORKER_ENGINE_LAYER_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "worker/engine/arena.h"
#include "worker/engine/tensor.h"

namespace assay {

// What must be known of a layer before times are given out.
struct LayerLiveness {
  int64_t time_steps = 1;          // that Forward takes, and Backward
  bool forward_in_place = false;   // Forward's result is `x`, overwritten
  bool backward_in_place = false;  // Backward's is `dy`
  bool waits_for_ranks = false;    // Forward does, whatever Pass::group: it is not run twice
};

// When a layer works and until when others use what it leaves, in numbered time steps: each layer
// that is not made of layers has one for Forward and one for Backward, in the order in which they
// run. Activations share memory by these lifetimes.
struct LayerTimes {
  static constexpr int64_t kFirstBackward = int64_t{1} << 40;  // behind every Forward

  int64_t forward = 0;                          // the first time step of Forward
  int64_t backward = kFirstBackward;            // the first time step of Backward
  int64_t result_until = Lifetime::kForever;    // others read Forward's result, in either pass
  int64_t gradient_until = Lifetime::kForever;  // others use Backward's

  // Of layers whose Forward runs a second time, in the backward pass (RecomputedLayer): all of the
  // above is said of that one, and what it shares is free between the two.
  struct Repetition {
    int64_t delay = 0;               // time steps from the first Forward to the second; 0: no other
    int64_t first_result_until = 0;  // others read the first Forward's result; as result_until
  };
  Repetition repetition;
};

// Where a layer reserves memory while its model is put together. What a layer writes and reads in
// one step only is best reserved for the time that it is needed: then it shares memory.
struct LayerMemory {
  Arena* activations;
  size_t* scratch_bytes;     // the largest wish of any layer
  bool has_backward = true;  // false: Backward is never called, no gradient needs memory
  LayerTimes times;
  bool has_result = true;  // false: somebody else calls another than Forward, and has the memory

  // Asks for memory that is this layer's own only during each call of Forward or Backward.
  void WantScratch(size_t bytes) { *scratch_bytes = std::max(*scratch_bytes, bytes); }
  // Reserves the result of a layer with one time step, which needs it for its own Backward too if
  // `is_read_backward`.
  void ReserveResult(const Shape& shape, DType dtype, bool is_read_backward, Tensor* result) {
    if (!has_result) return;
    const int64_t own = is_read_backward && has_backward ? times.backward : times.forward;
    ReserveResultAt(shape, dtype, times.forward, own, result);
  }
  // Reserves the result of any layer, written from `from` on and needed by the layer itself up to
  // `own`.
  void ReserveResultAt(const Shape& shape, DType dtype, int64_t from, int64_t own, Tensor* result) {
    Lifetimes lifetimes = {{from, std::max(own, times.result_until)}};
    if (times.repetition.delay > 0) {
      const int64_t first = from - times.repetition.delay;
      lifetimes.push_back({first, std::max(first, times.repetition.first_result_until)});
    }
    activations->ReserveShared(shape, dtype, std::move(lifetimes), result);
  }
  // Reserves what Forward of a layer with one time step leaves for its own Backward alone.
  void ReserveForBackward(const Shape& shape, DType dtype, Tensor* kept) {
    Lifetimes lifetimes = {{times.forward, has_backward ? times.backward : times.forward}};
    const int64_t first = times.forward - times.repetition.delay;
    if (times.repetition.delay > 0) lifetimes.push_back({first, first});
    activations->ReserveShared(shape, dtype, std::move(lifetimes), kept);
  }
  // Reserves what Backward of a layer with one time step returns.
  void ReserveGradient(const Shape& shape, DType dtype, Tensor* gradient) {
    activations->ReserveShared(shape, dtype, {{times.backward, times.gradient_until}}, gradient);
  }
};

}  // namespace assay

#endif  // WORKER_ENGINE_LAYER_MEMORY_H_
