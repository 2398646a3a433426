// Convolution by its definition; see reference_backend.h.

#ifndef WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_CONVOLUTION_H_

#include "worker/engine/backend.h"

namespace assay {

// `T` is float or double.
template <typename T>
class ReferenceConvolution : public Convolution {
 public:
  explicit ReferenceConvolution(const ConvShape& shape) : shape_(shape) {}

  void WeightsChanged() override {}
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override;
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override;

 private:
  const ConvShape shape_;
};

extern template class ReferenceConvolution<float>;
extern template class ReferenceConvolution<double>;

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_CONVOLUTION_H_
