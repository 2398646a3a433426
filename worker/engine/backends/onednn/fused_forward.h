// Convolution, bias, leaky ReLU and pooling in one loop, for few input channels.
//
// With four channels oneDNN reaches a third of the peak and writes, then reads, an unpooled tensor
// that is much larger than anything else. Here four rows of it live in the first-level cache until
// they are pooled. AVX-512 only. Results do not depend on the number of threads.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_FUSED_FORWARD_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_FUSED_FORWARD_H_

#include <cstdint>

#include "worker/engine/backend.h"
#include "worker/engine/backends/onednn/avx512_bf16.h"
#include "worker/engine/backends/onednn/padded_input.h"

namespace assay {

// Whether this machine and the loop can do `conv`: AVX-512, up to 4 input channels, width a
// multiple of 32, even depth and height, output channels a multiple of 8.
bool CanFuseForward(const ConvShape& conv);

// y and code from a planar padded input. w: (k, k, k, planes, out)   bias: (out)
// `Word` is float, where a plane is a channel, or Bf16Pair, where it is two (needs
// RequireAvx512Bf16).
template <typename Word>
struct FusedForward {
  const Word* planar;
  const Word* w;
  const float* bias;
  float slope;
  float* y;       // (B, D/2, H/2, W/2, out)
  uint8_t* code;  // same shape
};
// `planes`: its input channels are the planes.
template <typename Word>
void RunFusedForward(const PaddedInput& planes, const FusedForward<Word>& arguments);

extern template void RunFusedForward(const PaddedInput&, const FusedForward<float>&);
extern template void RunFusedForward(const PaddedInput&, const FusedForward<Bf16Pair>&);

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_FUSED_FORWARD_H_
