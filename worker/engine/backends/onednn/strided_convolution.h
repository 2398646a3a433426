// A strided convolution whose weights' gradient is taken tap by tap as matrix products.
//
// oneDNN 2.6 computes that gradient at an eighth of the processor's speed once both channel counts
// are large (docs/benchmarks/pytorch.md); DeepCAM's decoder doubles its map that way.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_STRIDED_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_STRIDED_CONVOLUTION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/engine/maps.h"

namespace assay {

class StridedConvolution : public Convolution {
 public:
  // Whether this is faster: strided, dense, and with channels enough to fill a product.
  static bool CanDo(const Conv2dShape& shape);
  // `dense`: the same convolution, for the other passes.
  StridedConvolution(const Conv2dShape& shape, std::unique_ptr<Convolution> dense);

  void WeightsChanged() override { dense_->WeightsChanged(); }
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override;
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override;

 private:
  void Gather(const float* x, int64_t tap);

  const Conv2dShape shape_;
  const std::unique_ptr<Convolution> dense_;
  std::vector<float> seen_;  // (B, H', W', C): what one tap sees
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_STRIDED_CONVOLUTION_H_
