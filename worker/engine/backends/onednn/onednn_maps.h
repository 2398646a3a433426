// Maps on CPU cores: dense convolutions by oneDNN, pointwise ones as matrix products, the rest by
// our own loops.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_MAPS_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_MAPS_H_

#include <memory>

#include "absl/status/statusor.h"

#include "worker/engine/backends/onednn/winograd_convolution.h"
#include "worker/engine/backends/onednn/winograd_transposed.h"
#include "worker/engine/backends/reference/reference_maps.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {

class OnednnMaps : public ReferenceMaps<float> {
 public:
  OnednnMaps(const dnnl::engine& engine, const dnnl::stream& stream)
      : engine_(engine), stream_(stream), winograd_memory_(engine) {}

  absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution2d(const Conv2dShape& shape) override;
  void ChannelMoments(const Tensor& x, const Tensor& mean, const Tensor& variance) override;
  void Normalise(const Normalisation& n, const Tensor& x, const Tensor& y) override;
  void NormaliseSums(const Normalisation& n, const Tensor& x, const Tensor& y, const Tensor& dy,
                     const Tensor& scale_gradient, const Tensor& shift_gradient) override;
  void NormaliseBackward(const Normalisation& n, const Tensor& x, const ChannelSums& sums,
                         const Tensor& dy) override;
  void Combine(double a, const Tensor& x, double b, const Tensor& y) override;
  void Sum(const Tensor& a, const Tensor& b, bool relu, const Tensor& y) override;
  void Relu(const Tensor& y) override;
  void ReluBackward(const Tensor& y, const Tensor& dy) override;
  void PutChannels(const Tensor& part, int64_t first, const Tensor& all) override;
  void TakeChannels(const Tensor& all, int64_t first, const Tensor& part) override;
  void SpatialSum(const Tensor& x, double factor, const Tensor& sum) override;
  void SpatialSpread(const Tensor& x, double factor, const Tensor& y) override;
  void SoftmaxCrossEntropy(const Tensor& logits, const Tensor& labels, const Tensor& weights,
                           const Tensor& gradient, const Tensor& loss) override;

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  WinogradMemory winograd_memory_;
  StripMemory strip_memory_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_MAPS_H_
