// A block of convolution and pooling whose backward pass skips the zeros that pooling puts into the
// gradient, and whose forward pass is fused where there are few input channels.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_CONV_POOL_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_CONV_POOL_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"
#include "worker/engine/backends/onednn/onednn_convolution.h"
#include "worker/engine/backends/onednn/sparse_backward.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {

// Zeroed floats at a multiple of a cache line.
class AlignedFloats {
 public:
  explicit AlignedFloats(size_t size) : lines_(size * sizeof(float) / sizeof(Line) + 1) {}
  float* data() { return lines_[0].values; }

 private:
  struct alignas(64) Line {
    float values[16] = {};
  };
  std::vector<Line> lines_;
};

class SparseConvPool : public ConvPool {
 public:
  // Whether the loops can do `shape`; then they are at least as fast as dense passes.
  static bool CanDo(const ConvPoolShape& shape);

  // For shapes that it CanDo. RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<SparseConvPool>> Make(const ConvPoolShape& shape,
                                                              const dnnl::engine& engine,
                                                              const dnnl::stream& stream);

  size_t scratch_bytes() const override;
  void WeightsChanged() override;
  void Forward(const ConvPoolTensors& tensors) override;
  void Backward(const ConvPoolTensors& tensors, const Tensor& dy,
                const ConvPoolGradients& gradients) override;

 private:
  SparseConvPool(const ConvPoolShape& shape, const dnnl::engine& engine,
                 const dnnl::stream& stream);

  const ConvPoolShape shape_;
  dnnl::stream stream_;
  const SparseBackward backward_;
  std::unique_ptr<OnednnConvolution> forward_;  // null if the forward pass is fused
  // Weights and their gradients in SparseBackward's order, and the ways between that and plain.
  AlignedFloats weights_, gradients_;
  dnnl::memory packed_weights_, packed_gradients_, plain_;
  dnnl::reorder pack_, unpack_;
  bool is_packed_ = false;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_SPARSE_CONV_POOL_H_
