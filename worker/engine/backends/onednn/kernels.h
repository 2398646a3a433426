// The operations that oneDNN lacks or cannot fuse, as loops that compilers turn into vectors.
//
// Compiled for AVX-512, AVX2 and the baseline; the machine's best is chosen when the program loads.
// Results do not depend on the number of threads.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_KERNELS_H_

#include <cstdint>
#include <span>

#include "worker/engine/backend.h"

namespace assay {

// Channels that the pooling kernels take at a time.
inline constexpr int64_t kPoolLanes = 8;

// Extents of a pooling: x is (batch, 2 * depth, 2 * height, 2 * width, channels), y and code are
// (batch, depth, height, width, channels).
struct PoolExtents {
  int64_t batch, depth, height, width;
  int64_t channels;  // a multiple of kPoolLanes
};

// As Backend::PoolForward.
void PoolForwardKernel(const PoolExtents& extents, const float* x, const float* bias, float slope,
                       float* y, uint8_t* code);

// As Backend::PoolBackward.
void PoolBackwardKernel(const PoolExtents& extents, const float* dy, const uint8_t* code,
                        float slope, float* dx, float* dbias);

// y[i] = table[counts[i] as unsigned]. table: 65,536 values.
void LookUpKernel(const float* table, std::span<const int16_t> counts, float* y);

// As Backend::Sgd, for equally long vectors.
void SgdKernel(const SgdStep& step, std::span<float> parameters, const float* gradients,
               float* velocity);

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_KERNELS_H_
