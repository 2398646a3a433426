// Depthwise convolution: each channel with its own k x k kernel.
//
// Limited by memory, not arithmetic: our loops over channels-last maps cope with any number of
// channels, stride and dilation, where oneDNN 2.6 has fast kernels for some only (docs/adr/0026).

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_DEPTHWISE_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_DEPTHWISE_H_

#include "worker/engine/maps.h"

namespace assay {

// Results do not depend on the number of threads.
class DepthwiseConvolution : public Convolution {
 public:
  static constexpr int64_t kMaxKernel = 7;

  // Whether `shape` is depthwise with a kernel up to kMaxKernel.
  static bool CanDo(const Conv2dShape& shape);
  explicit DepthwiseConvolution(const Conv2dShape& shape) : shape_(shape) {}

  void WeightsChanged() override {}
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override;
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override;

 private:
  const Conv2dShape shape_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_DEPTHWISE_H_
