// Convolution of maps by its definition, for the reference backend.

#ifndef WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_CONVOLUTION2D_H_
#define WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_CONVOLUTION2D_H_

#include "worker/engine/maps.h"

namespace assay {

// Any groups, strides and dilations. `T` is float or double; sums are kept in double.
template <typename T>
class ReferenceConvolution2d : public Convolution {
 public:
  explicit ReferenceConvolution2d(const Conv2dShape& shape) : shape_(shape) {}

  void WeightsChanged() override {}
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override;
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override;

 private:
  const Conv2dShape shape_;
};

extern template class ReferenceConvolution2d<float>;
extern template class ReferenceConvolution2d<double>;

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_CONVOLUTION2D_H_
