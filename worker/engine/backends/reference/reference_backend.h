// The oracle: every operation as the plainest loop over its definition, on one thread of the host.
//
// Sums are kept in double whatever the element type. With T = double it serves gradient checks.

#ifndef WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_BACKEND_H_
#define WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_BACKEND_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/engine/backend.h"
#include "worker/engine/backends/reference/reference_adaptive.h"
#include "worker/engine/backends/reference/reference_maps.h"

namespace assay {

// `T` is float or double. Not thread-safe.
template <typename T>
class ReferenceBackend : public Backend {
 public:
  absl::string_view name() const override { return "reference"; }
  DType real() const override { return DTypeOf<T>(); }
  MapOperations* maps() override { return &maps_; }
  AdaptiveOperations* adaptive() override { return &adaptive_; }

  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  void CopyIn(const void* host, const Tensor& dst) override;
  void CopyOut(const Tensor& src, void* host) override;
  void Copy(const Tensor& src, const Tensor& dst) override;
  void Synchronize() override {}

  void Log1p(const Tensor& counts, const Tensor& y) override;
  absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution(const ConvShape& shape) override;
  void PoolForward(const Tensor& x, const Tensor& bias, double slope, const Tensor& y,
                   const Tensor& code) override;
  void PoolBackward(const Tensor& dy, const Tensor& code, double slope, const Tensor& dx,
                    const Tensor& dbias) override;
  void DenseForward(const Tensor& x, const Tensor& w, const Tensor& y) override;
  void DenseBackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  void DenseBackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override;
  void ActivationForward(const Tensor& y, const Tensor& bias, const Activation& f) override;
  void ActivationBackward(const Tensor& y, const Activation& f, const Tensor& dy,
                          const Tensor& dbias) override;
  void Dropout(const DropoutMask& mask, const Tensor& y, const Tensor& scale) override;
  void Multiply(const Tensor& factor, const Tensor& x) override;
  void SquaredError(const Tensor& prediction, const Tensor& target, const Tensor& gradient,
                    const Tensor& loss) override;
  void Sgd(const SgdStep& step, const Tensor& parameters, const Tensor& gradients,
           const Tensor& velocity) override;
  void SumOfSquares(const Tensor& x, const Tensor& sum) override;

 private:
  ReferenceMaps<T> maps_;
  ReferenceAdaptive<T> adaptive_;
};

extern template class ReferenceBackend<float>;
extern template class ReferenceBackend<double>;

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_REFERENCE_REFERENCE_BACKEND_H_
