// The oracle for optimizers with two moments: the formulas of adaptive.h, element by element.

#ifndef WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_ADAPTIVE_H_
#define WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_ADAPTIVE_H_

#include "worker/engine/adaptive.h"

namespace assay {

// `T` is float or double; each element is computed in double. Not thread-safe.
template <typename T>
class ReferenceAdaptive : public AdaptiveOperations {
 public:
  void Adam(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
            const Tensor& m, const Tensor& v) override;
  void AdamW(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
             const Tensor& m, const Tensor& v) override;
  void Lamb(const AdaptiveStep& step, std::span<const int64_t> sizes, const Tensor& parameters,
            const Tensor& gradients, const Tensor& m, const Tensor& v) override;
  void AddScaled(double factor, const Tensor& x, const Tensor& y) override;
};

extern template class ReferenceAdaptive<float>;
extern template class ReferenceAdaptive<double>;

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_ADAPTIVE_H_
