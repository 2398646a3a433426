// Rounded copies of tensors that oneDNN multiplies in bfloat16.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_BF16_STAGING_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_BF16_STAGING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/engine/bfloat16.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {

// Memory for the rounded copies of what one operation reads. Grows when asked for more; holds
// nothing between operations, so all of a backend's share one. Not thread-safe.
class Bf16Staging {
 public:
  explicit Bf16Staging(const dnnl::engine& engine) : engine_(engine) {}

  // Makes room for `count` numbers at each of the places. Throws dnnl::error without memory.
  void Reserve(size_t place, int64_t count);
  // `from` rounded, at `place` (0 or 1) until the next call with the same place. As Reserve.
  Bfloat16* Rounded(size_t place, std::span<const float> from);

 private:
  struct Place {
    dnnl::memory memory;
    int64_t count = 0;
  };

  dnnl::engine engine_;
  std::array<Place, 2> places_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_BF16_STAGING_H_
