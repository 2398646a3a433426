// The first block of a network through first_layer_kernels.h.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_FIRST_LAYER_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_FIRST_LAYER_H_

#include <cstddef>

#include "worker/engine/backend.h"
#include "worker/engine/backends/onednn/first_layer_kernels.h"

namespace assay {

// For shapes that HasFirstLayerKernels; Backward cannot give dx.
class FirstLayer : public ConvPool {
 public:
  explicit FirstLayer(const ConvPoolShape& shape) : shape_(shape), input_(shape.conv) {}

  size_t scratch_bytes() const override { return PaddedFloats(input_) * sizeof(float); }
  void WeightsChanged() override {}
  void Forward(const ConvPoolTensors& tensors) override;
  void Backward(const ConvPoolTensors& tensors, const Tensor& dy,
                const ConvPoolGradients& gradients) override;

 private:
  const ConvPoolShape shape_;
  const PaddedInput input_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_FIRST_LAYER_H_
