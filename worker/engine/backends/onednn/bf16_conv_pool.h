// SparseConvPool with factors in bfloat16, added up in float32.
//
// Input, weights and the incoming gradient are rounded as they are brought into the order that the
// loops want, so rounding costs no pass over memory of its own except before oneDNN's forward
// kernels. Bias, activation and pooling see the float32 sums.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_BF16_CONV_POOL_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_BF16_CONV_POOL_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"
#include "worker/engine/backends/onednn/avx512_bf16.h"
#include "worker/engine/backends/onednn/bf16_sparse_backward.h"
#include "worker/engine/backends/onednn/padded_input.h"
#include "worker/engine/backends/onednn/sparse_conv_pool.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {

class Bf16ConvPool : public ConvPool {
 public:
  // Whether the loops can do `shape`.
  static bool CanDo(const ConvPoolShape& shape);

  // For shapes that it CanDo. RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<Bf16ConvPool>> Make(const ConvPoolShape& shape,
                                                            const dnnl::engine& engine,
                                                            const dnnl::stream& stream);

  size_t scratch_bytes() const override;
  void WeightsChanged() override;
  void Forward(const ConvPoolTensors& tensors) override;
  void Backward(const ConvPoolTensors& tensors, const Tensor& dy,
                const ConvPoolGradients& gradients) override;
  ~Bf16ConvPool() override;

 private:
  class DenseForward;

  Bf16ConvPool(const ConvPoolShape& shape, const dnnl::engine& engine, const dnnl::stream& stream);
  void ForwardFused(const ConvPoolTensors& tensors);

  const ConvPoolShape shape_;
  dnnl::stream stream_;
  const Bf16SparseBackward backward_;
  // Fused: what the planes of pairs are, and the weights in their order, (k, k, k, pairs, out).
  const PaddedInput planes_;
  std::vector<Bf16Pair> pairs_;
  bool is_paired_ = false;
  std::unique_ptr<DenseForward> forward_;  // null if the forward pass is fused
  // As Bf16SparseBackward wants them: weights (in memory for half as many floats) and gradients.
  AlignedFloats weights_, gradients_;
  bool is_packed_ = false;
  dnnl::memory packed_gradients_, plain_;
  dnnl::reorder unpack_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_BF16_CONV_POOL_H_
