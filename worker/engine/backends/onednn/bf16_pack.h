// Weights rounded to bfloat16 in the orders that products of pairs want.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_BF16_PACK_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_BF16_PACK_H_

#include <cstdint>

#include "worker/engine/bfloat16.h"

namespace assay {

// (taps, in, out) -> (out / block, taps, in / 2, block, 2), as oneDNN's convolutions read weights.
// oneDNN's own way there (2.6.3) took 5 ms for 512 x 256 x 27, a seventh of a step on cubes of 32.
struct BlockedPacking {
  int64_t taps, in, out;  // `in` is even
  int64_t block;          // a multiple of 16 that divides `out`

  void Run(const float* w, Bfloat16* packed) const;
};

// (segments, columns, out) -> (out, segments, stride), where the columns of two vectors of 16 that
// lie together are mixed: unpacklo and unpackhi of two channels give their pairs in order. Numbers
// between `columns` and `stride` are left alone.
struct ShuffledPacking {
  int64_t segments, columns, out;
  int64_t stride;  // a multiple of 16

  void Run(const float* w, Bfloat16* packed) const;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_BF16_PACK_H_
