// A convolution's input with its padding as numbers in memory, so that no loop needs a border case.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_PADDED_INPUT_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_PADDED_INPUT_H_

#include <cstddef>
#include <cstdint>

#include "worker/engine/backend.h"

namespace assay {

struct PaddedInput {
  static constexpr int64_t kLanes = 16;  // floats in an AVX-512 vector

  explicit PaddedInput(const ConvShape& of_conv);

  // Elements from one sample to the next: a multiple of kLanes, with room to read or write one
  // vector too many at the end of a sample.
  int64_t sample_stride() const;
  // Of the whole batch, planar or interleaved.
  size_t bytes() const;

  ConvShape conv;
  int64_t depth, height, width;  // padded
};

// x (B, D, H, W, C) -> (B, C, padded D, H, W).
void PadPlanar(const PaddedInput& input, const float* x, float* planar);
// x (B, D, H, W, C) -> (B, padded D, H, W, C).
void PadInterleaved(const PaddedInput& input, const float* x, float* interleaved);
// The reverse of PadInterleaved; values in the padding are dropped.
void CropInterleaved(const PaddedInput& input, const float* interleaved, float* x);

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_PADDED_INPUT_H_
