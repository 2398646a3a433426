// A convolution's input with its padding as numbers in memory, so that no loop needs a border case.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_PADDED_INPUT_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_PADDED_INPUT_H_

#include <cstddef>
#include <cstdint>

#include "worker/engine/backend.h"
#include "worker/engine/backends/onednn/avx512_bf16.h"
#include "worker/engine/bfloat16.h"

namespace assay {

struct PaddedInput {
  static constexpr int64_t kLanes = 16;  // floats in an AVX-512 vector

  explicit PaddedInput(const ConvShape& of_conv);

  // Elements from one sample to the next: a multiple of kLanes, with room to read or write one
  // vector too many at the end of a sample.
  int64_t sample_stride() const;
  // Of the whole batch, planar or interleaved.
  size_t bytes() const;
  // The same for bfloat16: samples begin at cache lines.
  int64_t bf16_sample_stride() const;
  size_t bf16_bytes() const;

  ConvShape conv;
  int64_t depth, height, width;  // padded
};

// x (B, D, H, W, C) -> (B, C, padded D, H, W).
void PadPlanar(const PaddedInput& input, const float* x, float* planar);
// x (B, D, H, W, C) -> (B, padded D, H, W, C).
void PadInterleaved(const PaddedInput& input, const float* x, float* interleaved);
// The same rounded, with samples bf16_sample_stride() apart.
void PadInterleavedBf16(const PaddedInput& input, const float* x, Bfloat16* interleaved);
// x (B, D, H, W, channels) rounded -> (B, pairs, padded D, H, W), where `planes` has one channel
// per pair; beside the last of an odd number of channels is 0.
void PadPairs(const PaddedInput& planes, int64_t channels, const float* x, Bf16Pair* planar);
// The reverse of PadInterleaved; values in the padding are dropped.
void CropInterleaved(const PaddedInput& input, const float* interleaved, float* x);

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_PADDED_INPUT_H_
