// A dilated convolution as matrix products, one for each tap and only where the tap is inside the
// map.
//
// DeepCAM's pyramid looks up to 18 pixels aside in maps of as few as 6 x 9: there most of the taps
// see nothing but padding, and most of the weights are not even read. On large maps the weights'
// gradient alone is faster this way: oneDNN 2.6 has nothing good for it; and evaluation goes by
// Winograd's algorithm where the map is large enough for that.

#ifndef WORKER_ENGINE_BACKENDS_ONEDNN_DILATED_CONVOLUTION_H_
#define WORKER_ENGINE_BACKENDS_ONEDNN_DILATED_CONVOLUTION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/engine/backends/onednn/winograd_grids.h"
#include "worker/engine/maps.h"

namespace assay {

class DilatedConvolution : public Convolution {
 public:
  // Whether this is faster: dilated, dense, and with channels enough to fill a product.
  static bool CanDo(const Conv2dShape& shape);
  // Whether so much of the work is on padding that it is faster for all passes; else for the
  // weights' gradient alone.
  static bool CanDoAll(const Conv2dShape& shape);
  // `dense`: the same convolution, for the other passes; null where CanDoAll. `grids`: for
  // evaluation; null: not offered.
  DilatedConvolution(const Conv2dShape& shape, std::unique_ptr<Convolution> dense,
                     std::unique_ptr<WinogradGrids> grids);

  void WeightsChanged() override;
  void PlanNormalised(bool relu) override {
    if (dense_ != nullptr && grids_ == nullptr) dense_->PlanNormalised(relu);
  }
  bool ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                         const Tensor& y) override;
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override;
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override;
  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override;

 private:
  // A tap, and the outputs for which it is inside the map: from (top, left) on.
  struct Window {
    int64_t tap;
    int64_t top, left, height, width;
    int64_t down, right;  // from an output to what the tap sees
  };

  static std::vector<Window> WindowsOf(const Conv2dShape& shape);
  int64_t Pixels(const Window& window) const { return shape_.batch * window.height * window.width; }
  bool IsWhole(const Window& window) const;
  int64_t PixelOf(const Window& window, int64_t row, bool is_seen) const;
  const float* Take(const Window& window, bool is_seen, const float* map, int64_t channels,
                    std::vector<float>* memory) const;
  void Add(const Window& window, bool is_seen, int64_t channels, float* map) const;

  const Conv2dShape shape_;
  const std::unique_ptr<Convolution> dense_;
  const std::unique_ptr<WinogradGrids> grids_;
  const std::vector<Window> windows_;  // the whole map first
  std::vector<float> seen_, gradients_, products_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_BACKENDS_ONEDNN_DILATED_CONVOLUTION_H_
