// The engine's operations on an NVIDIA GPU: this part decides what to run, a Device runs it.
//
// Parameters, gradients and activations between layers are float32 whatever the precision. Sums are
// kept in double where they are long. Links no CUDA: the device is behind an interface, so that all
// of this runs in the tests on a fake one.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_BACKEND_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_BACKEND_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/engine/backend.h"
#include "worker/engine/backends/cuda/cuda_ranks.h"
#include "worker/engine/backends/cuda/device.h"
#include "worker/engine/backends/cuda/recorder.h"

namespace assay::cuda {

struct CudaOptions {
  std::string name = "cuda";
  Precision precision = Precision::kFloat32;
};

// Not thread-safe.
class CudaBackend : public Backend {
 public:
  // RESOURCE_EXHAUSTED: no memory for the backend's own tables.
  static absl::StatusOr<std::unique_ptr<CudaBackend>> Make(std::unique_ptr<Device> device,
                                                           const CudaOptions& options);
  ~CudaBackend() override;

  absl::string_view name() const override { return options_.name; }
  DType real() const override { return DType::kFloat32; }
  bool is_host_memory() const override { return false; }

  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  void CopyIn(const void* host, const Tensor& dst) override;
  void CopyOut(const Tensor& src, void* host) override;
  void Copy(const Tensor& src, const Tensor& dst) override;
  void Synchronize() override;
  void BeginSection(int key) override;
  void EndSection() override;
  RankAverage* rank_average() override { return &ranks_; }

  void Log1p(const Tensor& counts, const Tensor& y) override;
  absl::StatusOr<std::unique_ptr<Convolution>> MakeConvolution(const ConvShape& shape) override;
  void PoolForward(const Tensor& x, const Tensor& bias, double slope, const Tensor& y,
                   const Tensor& code) override;
  void PoolBackward(const Tensor& dy, const Tensor& code, double slope, const Tensor& dx,
                    const Tensor& dbias) override;
  absl::StatusOr<std::unique_ptr<ConvPool>> MakeConvPool(const ConvPoolShape& shape) override;
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

  // --- For the backend's own parts ---

  Device* device() { return device_.get(); }
  Precision precision() const { return options_.precision; }
  void Issue(absl::string_view what, const Call& call);
  // The bias' gradient of a pooling: sums of what `code` lets through, by channel.
  void PoolBias(const Tensor& dy, const Tensor& code, double slope, const Tensor& dbias);
  const Recorder& recorder() const { return recorder_; }

 private:
  CudaBackend(std::unique_ptr<Device> device, const CudaOptions& options);
  absl::Status Prepare();
  // y (columns) = factor * sums over the rows of what `source` gives.
  template <typename Source>
  void SumRows(absl::string_view what, const Source& source, int64_t rows, double factor,
               const Tensor& y);
  MatmulCall Product(bool transpose_a, bool transpose_b, const Tensor& a, const Tensor& b,
                     const Tensor& c) const;

  const std::unique_ptr<Device> device_;
  const CudaOptions options_;
  Recorder recorder_;
  CudaRanks ranks_;
  void* log_table_ = nullptr;  // 65,536 floats
  void* partials_ = nullptr;   // of sums under way
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_BACKEND_H_
