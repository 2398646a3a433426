#include "worker/engine/backends/cuda/cuda_depthwise.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/depthwise_kernels.h"
#include "worker/engine/backends/cuda/map_extents.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

// Threads for each vector that sum the gradients of weights.
int64_t SumThreads(int64_t places, int64_t vectors, const Segments& segments) {
  const int64_t each = std::max<int64_t>(1, SumStrip(places, vectors) / segments.length);
  return (segments.count + each - 1) / each;
}

// T: of maps. kWidth: channels that a thread takes.
template <typename T, int kWidth>
class DepthwiseConvolution : public Convolution {
 public:
  DepthwiseConvolution(CudaBackend* backend, const Conv2dShape& shape)
      : backend_(backend),
        layout_(LayoutOf(shape)),
        is_strided_(shape.stride == 2),
        packs_(shape.out_channels / kWidth),
        height_(layout_.direct.height),
        width_(layout_.direct.width),
        y_segments_(SegmentsOf(shape.batch, height_.out, width_.out)),
        dx_segments_(SegmentsOf(shape.batch, height_.in, is_strided_ ? width_.out : width_.in)),
        threads_(SumThreads(layout_.direct.rows, packs_, y_segments_)) {}

  // Of the sums of threads.
  size_t scratch_bytes() const {
    return static_cast<size_t>(threads_ * layout_.direct.weights) * sizeof(float);
  }

  void WeightsChanged() override {}
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override {
    RunForward(x, w, {}, y);
  }
  bool ForwardNormalised(const Tensor& x, const Tensor& w, const Normalisation& n,
                         const Tensor& y) override {
    RunForward(x, w, TermsOf(n, y), y);
    return true;
  }

  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    CHECK(dx.shape == layout_.x && w.shape == layout_.w && dy.shape == layout_.y);
    const int64_t count = dx_segments_.count * packs_;
    if (!is_strided_) {
      backend_->Run("depthwise", Depthwise<T, kWidth>{.from = dy.As<T>(),
                                                      .w = w.As<float>(),
                                                      .to = dx.As<T>(),
                                                      .flips = true,
                                                      .channels = {},
                                                      .segments = dx_segments_,
                                                      .count = count});
      return;
    }
    backend_->Run("depthwise", DepthwiseStridedData<T, kWidth>{.dy = dy.As<T>(),
                                                               .w = w.As<float>(),
                                                               .dx = dx.As<T>(),
                                                               .height = height_.out,
                                                               .width = width_.out,
                                                               .in_width = width_.in,
                                                               .segments = dx_segments_,
                                                               .count = count});
  }

  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override {
    CHECK(x.shape == layout_.x && dw.shape == layout_.w && dy.shape == layout_.y);
    auto* const sums = static_cast<float*>(backend_->scratch());
    const int64_t count = threads_ * packs_;
    if (is_strided_) {
      backend_->Run("depthwise gradients", DepthwiseStridedTaps<T, kWidth>{.x = x.As<T>(),
                                                                           .dy = dy.As<T>(),
                                                                           .sums = sums,
                                                                           .threads = threads_,
                                                                           .height = height_.in,
                                                                           .width = width_.in,
                                                                           .segments = y_segments_,
                                                                           .count = count});
    } else {
      backend_->Run("depthwise gradients", DepthwiseTaps<T, kWidth>{.x = x.As<T>(),
                                                                    .dy = dy.As<T>(),
                                                                    .sums = sums,
                                                                    .threads = threads_,
                                                                    .segments = y_segments_,
                                                                    .count = count});
    }
    backend_->SumRows("depthwise gradients", Values<float>{sums}, threads_, 1, dw);
  }

 private:
  Segments SegmentsOf(int64_t batch, int32_t height, int32_t width) const {
    const int32_t dilation = width_.dilation;
    return Segments::Of(batch, height, width, dilation,
                        SegmentLength(batch * height, width / dilation, packs_),
                        layout_.direct.out_channels, packs_);
  }

  void RunForward(const Tensor& x, const Tensor& w, const ChannelTerms& channels, const Tensor& y) {
    CHECK(x.shape == layout_.x && w.shape == layout_.w && y.shape == layout_.y);
    const int64_t count = y_segments_.count * packs_;
    if (!is_strided_) {
      backend_->Run("depthwise", Depthwise<T, kWidth>{.from = x.As<T>(),
                                                      .w = w.As<float>(),
                                                      .to = y.As<T>(),
                                                      .flips = false,
                                                      .channels = channels,
                                                      .segments = y_segments_,
                                                      .count = count});
      return;
    }
    backend_->Run("depthwise", DepthwiseStrided<T, kWidth>{.x = x.As<T>(),
                                                           .w = w.As<float>(),
                                                           .y = y.As<T>(),
                                                           .channels = channels,
                                                           .height = height_.in,
                                                           .width = width_.in,
                                                           .segments = y_segments_,
                                                           .count = count});
  }

  CudaBackend* const backend_;
  const ConvolutionLayout layout_;
  const bool is_strided_;
  const int64_t packs_;  // of channels
  const DirectAxis height_, width_;
  const Segments y_segments_;
  const Segments dx_segments_;  // with a stride of pairs of places
  const int64_t threads_;       // that sum gradients of the weights, for each pack
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
  return shape.out_channels % kVecWidth<T> == 0 ? Prepare<T, kVecWidth<T>>(backend, shape)
                                                : Prepare<T, 1>(backend, shape);
}

}  // namespace

bool IsCudaDepthwise(const Conv2dShape& shape) {
  return shape.is_depthwise() && shape.kernel == 3 &&
         (shape.stride == 1 || (shape.stride == 2 && shape.dilation == 1)) &&
         shape.w().elements() <= kMaxColumns;
}

absl::StatusOr<std::unique_ptr<Convolution>> MakeCudaDepthwise(CudaBackend* backend,
                                                               const Conv2dShape& shape) {
  return backend->map_type() == DType::kBfloat16 ? Make<Bfloat16>(backend, shape)
                                                 : Make<float>(backend, shape);
}

}  // namespace assay::cuda
