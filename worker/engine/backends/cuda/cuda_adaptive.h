// Adam, AdamW and LAMB on an NVIDIA GPU.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CUDA_ADAPTIVE_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CUDA_ADAPTIVE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/adaptive.h"
#include "worker/engine/backends/cuda/optimizer_kernels.h"

namespace assay::cuda {

class CudaBackend;

// Part of a CudaBackend. In float, element by element. LAMB's lengths stay on the GPU.
class CudaAdaptive : public AdaptiveOperations {
 public:
  explicit CudaAdaptive(CudaBackend* backend) : backend_(backend) {}
  // Frees what it has on the GPU. Before the backend goes.
  void Release();

  void Adam(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
            const Tensor& m, const Tensor& v) override;
  void AdamW(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
             const Tensor& m, const Tensor& v) override;
  void Lamb(const AdaptiveStep& step, std::span<const int64_t> sizes, const Tensor& parameters,
            const Tensor& gradients, const Tensor& m, const Tensor& v) override;
  void AddScaled(double factor, const Tensor& x, const Tensor& y) override;

 private:
  // What LAMB needs to know of its tensors, and room for their lengths; on the GPU.
  struct Lengths {
    std::vector<int64_t> sizes;
    int64_t chunks_count = 0;
    void* memory = nullptr;
    Chunk* chunks = nullptr;
    int64_t* first_chunks = nullptr;
    Pair* parts = nullptr;
    float* ratios = nullptr;
  };

  void PrepareLengths(std::span<const int64_t> sizes);
  void Move(double rate, const Tensor& direction, const Tensor& parameters);

  CudaBackend* const backend_;
  Lengths lengths_;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CUDA_ADAPTIVE_H_
