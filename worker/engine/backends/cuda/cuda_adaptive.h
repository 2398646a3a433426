// Adam, AdamW and LAMB on an NVIDIA GPU.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_ADAPTIVE_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_ADAPTIVE_H_

#include "worker/engine/adaptive.h"

namespace assay::cuda {

class CudaBackend;

// Part of a CudaBackend. In float, element by element. LAMB's lengths stay on the GPU.
class CudaAdaptive : public AdaptiveOperations {
 public:
  explicit CudaAdaptive(CudaBackend* backend) : backend_(backend) {}

  void Adam(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
            const Tensor& m, const Tensor& v) override;
  void AdamW(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
             const Tensor& m, const Tensor& v) override;
  void Lamb(const AdaptiveStep& step, std::span<const int64_t> sizes, const Tensor& parameters,
            const Tensor& gradients, const Tensor& m, const Tensor& v) override;
  void AddScaled(double factor, const Tensor& x, const Tensor& y) override;

 private:
  // The step of one tensor.
  void MoveLamb(double rate, const Tensor& direction, const Tensor& parameters);
  Tensor InScratch(const Shape& shape) const;

  CudaBackend* const backend_;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_ADAPTIVE_H_
