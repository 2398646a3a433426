// Operations on maps on an NVIDIA GPU: dense convolutions by cuDNN, pointwise ones as matrix
// products by cuBLAS, the rest by our own kernels.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_MAPS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_MAPS_H_

#include <memory>

#include "absl/status/statusor.h"

#include "worker/engine/maps.h"

namespace assay::cuda {

class CudaBackend;

// Part of a CudaBackend. Sums over a map are kept in double. NormaliseSums reads the ReLU's cut off
// x, not y, and leaves dy as it was.
class CudaMaps : public MapOperations {
 public:
  explicit CudaMaps(CudaBackend* backend) : backend_(backend) {}

  absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution2d(const Conv2dShape& shape) override;
  void ChannelMoments(const Tensor& x, const Tensor& mean, const Tensor& variance) override;
  void Normalise(const Normalisation& n, const Tensor& x, const Tensor& y) override;
  void NormaliseAdd(const Normalisation& n, const Tensor& x, const Tensor& other,
                    const Tensor& y) override;
  bool adds_in_passing() const override { return true; }
  void NormaliseSums(const Normalisation& n, const Tensor& x, const Tensor& y, const Tensor& dy,
                     const Tensor& scale_gradient, const Tensor& shift_gradient) override;
  void NormaliseBackward(const Normalisation& n, const Tensor& x, const ChannelSums& sums,
                         const Tensor& dy) override;
  void MoveRunning(const RunningMoments& m) override;
  void Combine(double a, const Tensor& x, double b, const Tensor& y) override;
  void Sum(const Tensor& a, const Tensor& b, bool relu, const Tensor& y) override;
  void Relu(const Tensor& y) override { ReluBackward(y, y); }
  void ReluBackward(const Tensor& y, const Tensor& dy) override;
  void Convert(const Tensor& x, const Tensor& y) override;
  void PutChannels(const Tensor& part, int64_t first, const Tensor& all) override;
  void TakeChannels(const Tensor& all, int64_t first, const Tensor& part) override;
  void SpatialSum(const Tensor& x, double factor, const Tensor& sum) override;
  void SpatialSpread(const Tensor& x, double factor, const Tensor& y) override;
  // A label beyond the classes makes the loss a NaN.
  void SoftmaxCrossEntropy(const Tensor& logits, const Tensor& labels, const Tensor& weights,
                           const Tensor& gradient, const Tensor& loss) override;
  void Argmax(const Tensor& logits, const Tensor& labels) override;
  void CountClasses(const Tensor& labels, const Tensor& truth, const Tensor& counts) override;

 private:
  CudaBackend* const backend_;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_MAPS_H_
