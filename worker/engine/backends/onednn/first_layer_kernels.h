// Loops for the first convolution of a network: few input channels, no gradient of the input.
//
// oneDNN reaches a third of the peak there and writes, then reads, an unpooled tensor that is much
// larger than anything else. These loops pool a row while it is in registers, and use that the
// gradient of pooling has one non-zero among eight: the weight gradient costs an eighth of the
// multiplications. AVX-512 only. Results do not depend on the number of threads.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_FIRST_LAYER_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_FIRST_LAYER_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "worker/engine/backend.h"

namespace assay {

// Extents of the input with its padding, which the kernels want as numbers in memory.
struct PaddedInput {
  explicit PaddedInput(const ConvShape& conv);

  ConvShape conv;
  int64_t depth, height, width;  // padded

  int64_t sample_elements() const { return depth * height * width * conv.in_channels; }
};

// Whether this machine and the loops can do `shape`: AVX-512, kernel 2 or 3, up to 4 input
// channels, width a multiple of 32, even depth and height, output channels a multiple of 8.
bool HasFirstLayerKernels(const ConvPoolShape& shape);

// Floats that PadPlanar and PadInterleaved write.
size_t PaddedFloats(const PaddedInput& input);

// x (B, D, H, W, C) -> planar (B, C, padded D, H, W).
void PadPlanar(const PaddedInput& input, const float* x, float* planar);
// x (B, D, H, W, C) -> interleaved (B, padded D, H, W, C), with room to read a vector at the end.
void PadInterleaved(const PaddedInput& input, const float* x, float* interleaved);

// y and code from a planar input. w: (k, k, k, in, out)   bias: (out)
struct FirstLayerForward {
  const float* planar;
  const float* w;
  const float* bias;
  float slope;
  float* y;       // (B, D/2, H/2, W/2, out)
  uint8_t* code;  // same shape
};
void RunFirstLayerForward(const PaddedInput& input, const FirstLayerForward& arguments);

// dw and dbias from an interleaved input, the gradient of y and the forward's code.
struct FirstLayerBackward {
  const float* interleaved;
  const float* dy;      // (B, D/2, H/2, W/2, out)
  const uint8_t* code;  // same shape
  float slope;
  float* dw;     // (k, k, k, in, out)
  float* dbias;  // (out)
};
void RunFirstLayerBackward(const PaddedInput& input, const FirstLayerBackward& arguments);

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_FIRST_LAYER_KERNELS_H_
