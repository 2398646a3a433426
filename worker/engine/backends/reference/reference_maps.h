// The oracle for maps: every operation as the plainest loop over its definition.

#ifndef WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_MAPS_H_
#define WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_MAPS_H_

#include <memory>

#include "absl/status/statusor.h"

#include "worker/engine/maps.h"

namespace assay {

// `T` is float or double; sums are kept in double. Not thread-safe.
template <typename T>
class ReferenceMaps : public MapOperations {
 public:
  absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution2d(const Conv2dShape& shape) override;
  void ChannelMoments(const Tensor& x, const Tensor& mean, const Tensor& variance) override;
  void Normalise(const Normalisation& n, const Tensor& x, const Tensor& y) override;
  void NormaliseSums(const Normalisation& n, const Tensor& x, const Tensor& y, const Tensor& dy,
                     const Tensor& scale_gradient, const Tensor& shift_gradient) override;
  void NormaliseBackward(const Normalisation& n, const Tensor& x, const ChannelSums& sums,
                         const Tensor& dy) override;
  void Combine(double a, const Tensor& x, double b, const Tensor& y) override;
  void Relu(const Tensor& y) override;
  void ReluBackward(const Tensor& y, const Tensor& dy) override;
  void PutChannels(const Tensor& part, int64_t first, const Tensor& all) override;
  void TakeChannels(const Tensor& all, int64_t first, const Tensor& part) override;
  void SpatialSum(const Tensor& x, double factor, const Tensor& sum) override;
  void SpatialSpread(const Tensor& x, double factor, const Tensor& y) override;
  void SoftmaxCrossEntropy(const Tensor& logits, const Tensor& labels, const Tensor& weights,
                           const Tensor& gradient, const Tensor& loss) override;
  void Argmax(const Tensor& logits, const Tensor& labels) override;
  void CountClasses(const Tensor& labels, const Tensor& truth, const Tensor& counts) override;
};

extern template class ReferenceMaps<float>;
extern template class ReferenceMaps<double>;

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_MAPS_H_
