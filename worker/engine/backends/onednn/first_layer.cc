#include "worker/engine/backends/onednn/first_layer.h"

#include "common/log.h"

namespace assay {

void FirstLayer::Forward(const ConvPoolTensors& t) {
  CHECK(t.x.shape == shape_.conv.x() && t.w.shape == shape_.conv.w() && t.y.shape == shape_.y());
  float* planar = static_cast<float*>(t.scratch);
  PadPlanar(input_, t.x.As<float>(), planar);
  RunFirstLayerForward(input_, {.planar = planar,
                                .w = t.w.As<float>(),
                                .bias = t.bias.As<float>(),
                                .slope = static_cast<float>(shape_.slope),
                                .y = t.y.As<float>(),
                                .code = t.code.As<uint8_t>()});
}

void FirstLayer::Backward(const ConvPoolTensors& t, const Tensor& dy,
                          const ConvPoolGradients& gradients) {
  CHECK(gradients.dx.data == nullptr) << "the first layer has no gradient of its input";
  CHECK(dy.shape == shape_.y() && gradients.dw.shape == shape_.conv.w());
  float* interleaved = static_cast<float*>(t.scratch);
  PadInterleaved(input_, t.x.As<float>(), interleaved);
  RunFirstLayerBackward(input_, {.interleaved = interleaved,
                                 .dy = dy.As<float>(),
                                 .code = t.code.As<uint8_t>(),
                                 .slope = static_cast<float>(shape_.slope),
                                 .dw = gradients.dw.As<float>(),
                                 .dbias = gradients.dbias.As<float>()});
}

}  // namespace assay
