// Optimizer steps as loops that compilers turn into vectors, for the CPU backend.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_OPTIMIZER_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_OPTIMIZER_KERNELS_H_

#include <span>

#include "worker/engine/adaptive.h"

namespace assay {

// Does not depend on the number of threads.
double SumOfSquaresKernel(std::span<const float> x);

// In float, element by element. Not thread-safe.
class OnednnAdaptive : public AdaptiveOperations {
 public:
  void Adam(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
            const Tensor& m, const Tensor& v) override;
  void AdamW(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
             const Tensor& m, const Tensor& v) override;
  void Lamb(const AdaptiveStep& step, std::span<const int64_t> sizes, const Tensor& parameters,
            const Tensor& gradients, const Tensor& m, const Tensor& v) override;
  void AddScaled(double factor, const Tensor& x, const Tensor& y) override;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_OPTIMIZER_KERNELS_H_
