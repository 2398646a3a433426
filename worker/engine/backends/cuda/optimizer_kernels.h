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
  const float* squares;  // (1): of all gradients; null: they are not shortened
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
    const float gradient = Shortening() * g[i] + gradient_decay * p[i];
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
  ASSAY_DEVICE float Shortening() const {
    if (squares == nullptr) return 1;
    const float length = sqrtf(*squares);
    return length > max_length ? max_length / length : 1;
  }
  friend bool operator==(const AdaptiveUpdate&, const AdaptiveUpdate&) = default;
};

// What a Fold sums into two columns: the squares of x, and those of y.
struct PairedSquares {
  const float* x;
  const float* y;

  ASSAY_DEVICE double operator()(const Term& t) const {
    const double value{t.column == 0 ? x[t.row] : y[t.row]};
    return value * value;
  }
  friend bool operator==(const PairedSquares&, const PairedSquares&) = default;
};

// How LAMB moves one tensor along its direction.
struct LambMove {
  float rate;
  const float* squares;  // (2): of the parameters and the direction
  const float* direction;
  float* p;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const bool has_lengths = squares[0] > 0 && squares[1] > 0;
    const float ratio = has_lengths ? sqrtf(squares[0]) / sqrtf(squares[1]) : 1;
    p[i] -= rate * ratio * direction[i];
  }
  friend bool operator==(const LambMove&, const LambMove&) = default;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_OPTIMIZER_KERNELS_H_
