// Steps of the optimizers that keep two moments of the gradient: what a backend adds to backend.h
// for Adam, AdamW and LAMB.

#ifndef WORKER_ENGINE_ADAPTIVE_H_
#define WORKER_ENGINE_ADAPTIVE_H_

#include <cmath>
#include <cstdint>
#include <span>

#include "worker/engine/tensor.h"

namespace assay {

struct AdaptiveStep {
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;
  int64_t step = 1;       // t, from 1
  double max_length = 0;  // of LAMB: longer gradients are clipped to it; 0: none are

  double correction1() const { return 1 - std::pow(beta1, static_cast<double>(step)); }
  double correction2() const { return 1 - std::pow(beta2, static_cast<double>(step)); }
};

// What LAMB multiplies the learning rate by for a tensor of these lengths.
inline double LambRatio(const AdaptiveStep& step, double length, double direction_length) {
  const bool is_one = step.weight_decay == 0 || !(length > 0) || !(direction_length > 0);
  return is_one ? 1 : length / direction_length;
}

// Not thread-safe; belongs to its backend. All tensors of one call have equal shapes and are real.
// Gradients serve as working memory: what they hold afterwards is unspecified unless stated.
//   m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2
class AdaptiveOperations {
 public:
  virtual ~AdaptiveOperations() = default;

  // g <- g + weight_decay p;  p <- p - lr (m / c1) / (sqrt(v) / sqrt(c2) + epsilon).
  // Kingma and Ba, "Adam: a method for stochastic optimization", 2015, in PyTorch's form.
  virtual void Adam(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
                    const Tensor& m, const Tensor& v) = 0;
  // p <- p (1 - lr weight_decay), then as Adam without its decay.
  // Loshchilov and Hutter, "Decoupled weight decay regularization", 2019.
  virtual void AdamW(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
                     const Tensor& m, const Tensor& v) = 0;
  // Over several tensors that lie side by side: all of g is first clipped to max_length, then
  //   u = (m / c1) / (sqrt(v / c2) + epsilon) + weight_decay p
  // and in each tensor p <- p - lr |p| / |u| u; the ratio is 1 where one of the lengths is 0, and
  // everywhere if there is no weight decay.
  //   sizes: elements of each tensor, in order
  // You et al., "Large batch optimization for deep learning", 2020, as in APEX.
  virtual void Lamb(const AdaptiveStep& step, std::span<const int64_t> sizes,
                    const Tensor& parameters, const Tensor& gradients, const Tensor& m,
                    const Tensor& v) = 0;
  // y <- y + factor * x
  virtual void AddScaled(double factor, const Tensor& x, const Tensor& y) = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_ADAPTIVE_H_
