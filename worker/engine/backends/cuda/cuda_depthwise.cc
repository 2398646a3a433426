#include "worker/engine/backends/cuda/cuda_depthwise.h"

#include <cstddef>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/depthwise_kernels.h"
#include "worker/engine/backends/cuda/map_extents.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// T: of maps. kWidth: channels that a thread takes.
template <typename T, int kWidth>
class DepthwiseConvolution : public Convolution {
 public:
  DepthwiseConvolution(CudaBackend* backend, const Conv2dShape& shape)
      : backend_(backend),
        layout_(LayoutOf(shape)),
        packs_(shape.out_channels / kWidth),
        sum_strip_(SumStrip(layout_.direct.rows, packs_)),
        sum_strips_(CeilDiv(layout_.direct.rows, sum_strip_)) {}

  // Of the sums of strips.
  size_t scratch_bytes() const {
    return static_cast<size_t>(sum_strips_ * layout_.direct.weights) * sizeof(float);
  }

  void WeightsChanged() override {}
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override {
    Run<true>(x, w, {}, y);
  }
  bool ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                         const Tensor& y) override {
    Run<true>(x, w, TermsOf(n, y), y);
    return true;
  }
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    Run<false>(dy, w, {}, dx);
  }

  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override {
    CHECK(x.shape == layout_.x && dw.shape == layout_.w && dy.shape == layout_.y);
    auto* const sums = static_cast<float*>(backend_->scratch());
    backend_->Run("depthwise gradients", DepthwiseTaps<T, kWidth>{.x = x.As<T>(),
                                                                  .dy = dy.As<T>(),
                                                                  .sums = sums,
                                                                  .s = layout_.direct,
                                                                  .strip = sum_strip_,
                                                                  .count = sum_strips_ * packs_});
    backend_->SumRows("depthwise gradients", Values<float>{sums}, sum_strips_, 1, dw);
  }

 private:
  template <bool is_forward>
  void Run(const Tensor& from, const Tensor& w, const ChannelTerms& channels, const Tensor& to) {
    CHECK(from.shape == (is_forward ? layout_.x : layout_.y) && w.shape == layout_.w &&
          to.shape == (is_forward ? layout_.y : layout_.x));
    const int64_t rows = ExtentsOf(to).rows;
    backend_->Run("depthwise", Depthwise<T, kWidth, is_forward>{
                                   .from = from.As<T>(),
                                   .w = w.As<float>(),
                                   .to = to.As<T>(),
                                   .s = layout_.direct,
                                   .channels = channels,
                                   .rows = rows,
                                   .strip = kDepthwiseStrip,
                                   .count = CeilDiv(rows, kDepthwiseStrip) * packs_});
  }

  CudaBackend* const backend_;
  const ConvolutionLayout layout_;
  const int64_t packs_;       // of channels
  const int64_t sum_strip_;   // places that one thread sums
  const int64_t sum_strips_;  // threads for each vector
};

template <typename T, int kWidth>
absl::StatusOr<std::unique_ptr<Convolution>> Prepare(CudaBackend* backend,
                                                     const Conv2dShape& shape) {
  auto convolution = std::make_unique<DepthwiseConvolution<T, kWidth>>(backend, shape);
  RETURN_IF_ERROR(backend->ReserveScratch(convolution->scratch_bytes()));
  return convolution;
}

template <typename T>
absl::StatusOr<std::unique_ptr<Convolution>> Make(CudaBackend* backend, const Conv2dShape& shape) {
  const bool is_vectorised = shape.out_channels % kDepthwiseWidth == 0;
  return is_vectorised ? Prepare<T, kDepthwiseWidth>(backend, shape)
                       : Prepare<T, 1>(backend, shape);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Convolution>> MakeCudaDepthwise(CudaBackend* backend,
                                                               const Conv2dShape& shape) {
  return backend->map_type() == DType::kBfloat16 ? Make<Bfloat16>(backend, shape)
                                                 : Make<float>(backend, shape);
}

}  // namespace assay::cuda
