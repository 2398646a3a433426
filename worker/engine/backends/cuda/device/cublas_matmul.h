// Matrix products by cuBLASLt.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUBLAS_MATMUL_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUBLAS_MATMUL_H_

#include <cublasLt.h>

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>

#include "worker/engine/backends/cuda/device.h"

namespace assay::cuda {

// Chooses an algorithm for each shape once. Not thread-safe.
class CublasMatmul {
 public:
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what cuBLAS advises for Hopper

  CublasMatmul();
  ~CublasMatmul();
  CublasMatmul(const CublasMatmul&) = delete;
  CublasMatmul& operator=(const CublasMatmul&) = delete;

  Fault Open();
  // `workspace`: kWorkspaceBytes at a multiple of 256. kUnsupported: no algorithm, nothing was
  // started.
  Fault Run(const MatmulCall& call, void* workspace, cudaStream_t stream);

 private:
  struct Plan;
  // All that the choice depends on, with the alignment of the three matrices.
  using Key = std::tuple<bool, bool, int64_t, int64_t, int64_t, ProductNumbers, int, uint32_t>;

  Fault Find(const MatmulCall& call, Plan** plan);

  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEVICE_CUBLAS_MATMUL_H_
