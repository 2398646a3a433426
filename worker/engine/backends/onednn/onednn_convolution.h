// A convolution through oneDNN's direct kernels.
//
// Activations stay in plain (B, D, H, W, C), for which oneDNN's kernels are as fast as for its own
// blocked layouts, and faster where there are few channels (figures: docs/benchmarks/training.md).
// Only weights are packed, once per change, because each of the three kernels wants its own order.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_CONVOLUTION_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"
#include "worker/engine/maps.h"
#include <oneapi/dnnl/dnnl.hpp>

namespace assay {

class OnednnConvolution : public Convolution {
 public:
  // INVALID_ARGUMENT: oneDNN cannot do this shape. RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<OnednnConvolution>> Make(const ConvShape& shape,
                                                                 const dnnl::engine& engine,
                                                                 const dnnl::stream& stream);
  static absl::StatusOr<std::unique_ptr<OnednnConvolution>> Make(const Conv2dShape& shape,
                                                                 const dnnl::engine& engine,
                                                                 const dnnl::stream& stream);

  // What the library is told: descriptions of the three tensors, and the geometry.
  struct Geometry {
    Shape x_shape, w_shape, y_shape;
    dnnl::memory::desc x, y, any_w, plain_w;             // any_w: in any order
    dnnl::memory::dims strides, dilates, before, after;  // dilates: 0 is dense
  };

  void WeightsChanged() override;
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override;
  void PlanNormalised(bool relu) override;
  // Offered for maps where the library's kernel is the one that it has for Forward.
  bool ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                         const Tensor& y) override;
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override;

 private:
  // Weights in the order that one kernel wants, and the way between that and (k, k, k, in, out).
  struct PackedWeights {
    dnnl::memory memory;
    dnnl::reorder reorder;
    bool is_current = false;
  };

  // The gradient of x as a forward convolution of that of y with the weights turned around: inputs
  // for outputs, the last tap first. At stride 1 only.
  struct MirroredForward {
    dnnl::convolution_forward primitive;  // empty: not offered
    dnnl::memory turned;                  // the weights, plain, the last tap first
    PackedWeights weights;                // from `turned`
  };

  // Forward with a multiplication, an addition and ReLU behind the sums.
  struct NormalisedForward {
    bool has_relu = false;
    dnnl::convolution_forward primitive;  // empty: not offered
    dnnl::memory slope, offset;           // (out); views
  };

  OnednnConvolution(const Geometry& geometry, const dnnl::engine& engine,
                    const dnnl::stream& stream);
  static absl::StatusOr<std::unique_ptr<OnednnConvolution>> Make(const Geometry& geometry,
                                                                 const dnnl::engine& engine,
                                                                 const dnnl::stream& stream);
  void PlanMirrored();
  void MakeNormalised(bool has_relu);
  void Pack(const Tensor& w, PackedWeights* packed);
  void PackMirrored(const Tensor& w);

  const Geometry shape_;
  dnnl::stream stream_;
  // Views whose addresses change with every call.
  dnnl::memory x_, w_, y_;
  dnnl::convolution_forward forward_;
  std::string forward_kernel_;                   // the library's name for it
  std::optional<NormalisedForward> normalised_;  // planned when first asked for
  MirroredForward mirrored_;
  dnnl::convolution_backward_data backward_data_;  // where mirrored_ is not offered
  dnnl::convolution_backward_weights backward_weights_;
  PackedWeights forward_weights_;
  PackedWeights backward_data_weights_;
  PackedWeights weight_gradients_;  // the way is from packed to plain
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_ONEDNN_CONVOLUTION_H_
