// A strided convolution whose gradients are taken as matrix products.
//
// oneDNN 2.6 computes the weights' gradient at an eighth of the processor's speed once both channel
// counts are large, and the input's gradient at less than half of it
// (docs/benchmarks/pytorch.md); DeepCAM's decoder doubles its map that way.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_STRIDED_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_STRIDED_CONVOLUTION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/engine/backends/onednn/winograd_transposed.h"
#include "worker/engine/maps.h"

namespace assay {

class StridedConvolution : public Convolution {
 public:
  // Whether this is faster: strided, dense, and with output channels enough to fill a product.
  static bool CanDo(const Conv2dShape& shape);
  // `dense`: the same convolution, for the other passes. `memory` must outlive this.
  StridedConvolution(const Conv2dShape& shape, std::unique_ptr<Convolution> dense,
                     StripMemory* memory);

  void WeightsChanged() override;
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override;
  void PlanNormalised(bool relu) override { dense_->PlanNormalised(relu); }
  bool ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                         const Tensor& y) override {
    return dense_->ForwardNormalised(x, w, n, y);
  }
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  bool BackwardDataNormalised(const Tensor& dy, const Tensor& w, const Normalisation& n,
                              const Tensor& dx) override;
  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override;

 private:
  // The parts of a product's row that meet at one position along an axis of x, in elements.
  struct Meeting {
    int64_t count = 0;
    int64_t offset[2] = {};
  };

  Meeting MeetingAt(int64_t position, int64_t outputs, int64_t output_step, int64_t tap_step) const;
  void AddRows(int64_t first, int64_t last, float* dx) const;
  void Gather(const float* x, int64_t tap);

  const Conv2dShape shape_;
  const std::unique_ptr<Convolution> dense_;
  const std::unique_ptr<WinogradTransposed> winograd_;  // null: not offered
  std::vector<float> seen_;                             // (B, H', W', C): what one tap sees
  // Some rows of dy, times all weights: (rows, W', k, k, C).
  std::vector<float> products_;
  std::vector<Meeting> columns_;  // of each column of x
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_STRIDED_CONVOLUTION_H_
