// Kernels of optimizer steps: each element of the parameters by itself.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_OPTIMIZER_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_OPTIMIZER_KERNELS_H_

#include <cmath>
#include <cstdint>

#include "worker/engine/backends/cuda/sum_kernels.h"

namespace assay::cuda {

// As Backend::Sgd.
struct Sgd {
  float rate, momentum, decay;  // decay: 2 * l2
  float* w;
  const float* g;
  float* v;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float velocity = momentum * v[i] - rate * (g[i] + decay * w[i]);
    v[i] = velocity;
    w[i] += velocity;
  }
  friend bool operator==(const Sgd&, const Sgd&) = default;
};

// One direction serves Adam, AdamW and LAMB (worker/engine/adaptive.h):
//   d = m_factor * m / (root_factor * sqrt(v) + epsilon) + direction_decay * p
// The first two move the parameters along it; LAMB's replaces the gradients.
struct AdaptiveUpdate {
  float* p;
  float* g;
  float* m;
  float* v;
  const float* squares;  // (1): of all gradients; null: they are not clipped
  float max_length;
  float gradient_decay;  // g <- g + gradient_decay * p
  float beta1, rest1;    // rest = 1 - beta
  float beta2, rest2;
  float m_factor, root_factor, epsilon;
  float direction_decay;
  bool moves;
  float keep, rate;  // p <- keep * p - rate * d
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float gradient = ClippingFactor() * g[i] + gradient_decay * p[i];
    m[i] = beta1 * m[i] + rest1 * gradient;
    v[i] = beta2 * v[i] + rest2 * gradient * gradient;
    const float direction =
        m_factor * m[i] / (root_factor * sqrtf(v[i]) + epsilon) + direction_decay * p[i];
    if (moves) {
      p[i] = keep * p[i] - rate * direction;
    } else {
      g[i] = direction;
    }
  }
  ASSAY_DEVICE float ClippingFactor() const {
    if (squares == nullptr) return 1;
    const float length = sqrtf(*squares);
    return length > max_length ? max_length / length : 1;
  }
  friend bool operator==(const AdaptiveUpdate&, const AdaptiveUpdate&) = default;
};

// --- LAMB's lengths: many tensors side by side, cut into chunks of at most kChunkElements ---

inline constexpr int64_t kChunkElements = 1 << 14;
inline constexpr int64_t kChunkLanes = 64;  // threads that sum one chunk

struct Chunk {
  int64_t first;   // element
  int32_t size;    // elements
  int32_t tensor;  // which it is a part of
};

// Squares of x and y, by lanes of chunks.
struct ChunkSquares {
  const Chunk* chunks;
  const float* x;
  const float* y;
  Pair* sums;     // (chunks, kChunkLanes)
  int64_t count;  // as many

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Chunk chunk = chunks[i / kChunkLanes];
    Pair sum = {};
    for (int64_t at = chunk.first + i % kChunkLanes; at < chunk.first + chunk.size;
         at += kChunkLanes) {
      const double value{x[at]}, other{y[at]};
      sum += Pair{value * value, other * other};
    }
    sums[i] = sum;
  }
  friend bool operator==(const ChunkSquares&, const ChunkSquares&) = default;
};

// By tensors: what LAMB multiplies its rate by, the length of the parameters divided by that of the
// direction.
struct TensorRatios {
  using Sum = Pair;
  static constexpr bool kByBlocks = true;  // as Fold

  const int64_t* first_chunks;  // of each tensor, and behind the last
  const Pair* parts;            // of ChunkSquares
  float* ratios;                // (tensors)
  int64_t count;                // tensors

  ASSAY_DEVICE Pair Part(int64_t i, int64_t lane, int64_t lanes) const {
    Pair sum = {};
    const int64_t last = first_chunks[i + 1] * kChunkLanes;
    for (int64_t at = first_chunks[i] * kChunkLanes + lane; at < last; at += lanes)
      sum += parts[at];
    return sum;
  }
  ASSAY_DEVICE void Store(int64_t i, const Pair& squares) const {
    const bool has_lengths = squares.first > 0 && squares.second > 0;
    ratios[i] = has_lengths ? static_cast<float>(sqrt(squares.first) / sqrt(squares.second)) : 1.0F;
  }
  ASSAY_DEVICE void operator()(int64_t i) const { Store(i, Part(i, 0, 1)); }
  friend bool operator==(const TensorRatios&, const TensorRatios&) = default;
};

// How LAMB moves each tensor along its direction.
struct LambMove {
  float rate;
  const Chunk* chunks;
  const float* ratios;  // (tensors)
  const float* direction;
  float* p;
  int64_t count;  // chunks * kChunkElements

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Chunk chunk = chunks[i / kChunkElements];
    if (i % kChunkElements >= chunk.size) return;
    const int64_t at = chunk.first + i % kChunkElements;
    p[at] -= rate * ratios[chunk.tensor] * direction[at];
  }
  friend bool operator==(const LambMove&, const LambMove&) = default;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_OPTIMIZER_KERNELS_H_
