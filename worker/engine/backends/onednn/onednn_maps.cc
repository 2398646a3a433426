#include "worker/engine/backends/onednn/onednn_maps.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/onednn/depthwise.h"
#include "worker/engine/backends/onednn/dilated_convolution.h"
#include "worker/engine/backends/onednn/gemm.h"
#include "worker/engine/backends/onednn/map_kernels.h"
#include "worker/engine/backends/onednn/onednn_convolution.h"
#include "worker/engine/backends/onednn/onednn_error.h"
#include "worker/engine/backends/onednn/strided_convolution.h"

namespace assay {
namespace {

MapExtents ExtentsOf(const Tensor& x) {
  const int64_t channels = x.shape[x.shape.rank() - 1];
  return {x.elements() / channels, channels};
}

void Store(std::span<const double> sums, double factor, const Tensor& result) {
  CHECK(result.elements() == std::ssize(sums));
  std::transform(sums.begin(), sums.end(), result.As<float>(),
                 [factor](double sum) { return static_cast<float>(factor * sum); });
}

std::vector<float> InverseDeviations(const Normalisation& n) {
  std::vector<float> inverse;
  for (const float variance : n.variance.Span<float>())
    inverse.push_back(static_cast<float>(1 / std::sqrt(double{variance} + n.epsilon)));
  return inverse;
}

// A convolution of kernel 1 and stride 1 is a product of the pixels' matrix with the weights. It is
// so for evaluation too: oneDNN's convolution, which normalises as it stores, is slower by more.
class PointwiseConvolution : public Convolution {
 public:
  explicit PointwiseConvolution(const Conv2dShape& shape)
      : shape_(shape), rows_(shape.batch * shape.height * shape.width) {}

  void WeightsChanged() override {}

  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override {
    CHECK(x.shape == shape_.x() && w.shape == shape_.w() && y.shape == shape_.y());
    Run({false, false, rows_, shape_.out_channels, shape_.in_channels}, x, w, y);
  }

  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    CHECK(dx.shape == shape_.x() && w.shape == shape_.w() && dy.shape == shape_.y());
    Run({false, true, rows_, shape_.in_channels, shape_.out_channels}, dy, w, dx);
  }

  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override {
    CHECK(x.shape == shape_.x() && dw.shape == shape_.w() && dy.shape == shape_.y());
    Run({true, false, shape_.in_channels, shape_.out_channels, rows_}, x, dy, dw);
  }

 private:
  static void Run(const Gemm& product, const Tensor& a, const Tensor& b, const Tensor& c) {
    product.Run(a.As<float>(), b.As<float>(), c.As<float>());
  }

  const Conv2dShape shape_;
  const int64_t rows_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Convolution>> OnednnMaps::MakeConvolution2d(
    const Conv2dShape& shape) {
  if (DepthwiseConvolution::CanDo(shape)) return std::make_unique<DepthwiseConvolution>(shape);
  if (shape.kernel == 1 && shape.stride == 1 && shape.groups == 1)
    return std::make_unique<PointwiseConvolution>(shape);
  if (DilatedConvolution::CanDoAll(shape))
    return std::make_unique<DilatedConvolution>(shape, nullptr, nullptr);
  std::unique_ptr<Convolution> winograd;
  std::unique_ptr<WinogradGrids> grids;
  RETURN_IF_ERROR(CatchOnednn("convolution", [&] {
    winograd = WinogradConvolution::Make(shape, stream_, &winograd_memory_);
    grids = WinogradGrids::Make(shape, stream_, &winograd_memory_);
  }));
  if (winograd != nullptr) return winograd;
  ASSIGN_OR_RETURN(std::unique_ptr<OnednnConvolution> convolution,
                   OnednnConvolution::Make(shape, engine_, stream_));
  if (DilatedConvolution::CanDo(shape))
    return std::make_unique<DilatedConvolution>(shape, std::move(convolution), std::move(grids));
  if (StridedConvolution::CanDo(shape))
    return std::make_unique<StridedConvolution>(shape, std::move(convolution), &strip_memory_);
  return convolution;
}

void OnednnMaps::ChannelMoments(const Tensor& x, const Tensor& mean, const Tensor& variance) {
  const MapExtents e = ExtentsOf(x);
  const double share = 1 / static_cast<double>(e.rows);
  Store(RowSumsKernel(e, x.As<float>()), share, mean);
  Store(SquaredOffsetsKernel(e, x.As<float>(), mean.As<float>()), share, variance);
}

void OnednnMaps::Normalise(const Normalisation& n, const Tensor& x, const Tensor& y) {
  CHECK(x.shape == y.shape && n.mean.elements() == ExtentsOf(x).channels);
  std::vector<float> slope = InverseDeviations(n);
  for (size_t c = 0; c < slope.size(); ++c)
    slope[c] *= n.scale.As<float>()[c];
  NormaliseKernel(ExtentsOf(x), {n.mean.As<float>(), slope.data(), n.shift.As<float>(), n.relu},
                  x.As<float>(), y.As<float>());
}

void OnednnMaps::NormaliseSums(const Normalisation& n, const Tensor& x, const Tensor& y,
                               const Tensor& dy, const Tensor& scale_gradient,
                               const Tensor& shift_gradient) {
  CHECK(x.shape == y.shape && x.shape == dy.shape && n.mean.elements() == ExtentsOf(x).channels);
  std::vector<double> sums = NormaliseSumsKernel(ExtentsOf(x), n.mean.As<float>(), x.As<float>(),
                                                 n.relu ? y.As<float>() : nullptr, dy.As<float>());
  const std::vector<float> inverse = InverseDeviations(n);
  for (size_t c = 0; c < inverse.size(); ++c)
    sums[c] *= double{inverse[c]};
  Store(std::span<const double>(sums).first(inverse.size()), 1, scale_gradient);
  Store(std::span<const double>(sums).last(inverse.size()), 1, shift_gradient);
}

void OnednnMaps::NormaliseBackward(const Normalisation& n, const Tensor& x, const ChannelSums& sums,
                                   const Tensor& dy) {
  CHECK(x.shape == dy.shape && n.mean.elements() == ExtentsOf(x).channels);
  std::vector<float> slope = InverseDeviations(n), factor = slope, shift_mean(slope.size());
  const float share = static_cast<float>(sums.share);
  for (size_t c = 0; c < slope.size(); ++c) {
    factor[c] *= share * sums.scale.As<float>()[c];
    shift_mean[c] = share * sums.shift.As<float>()[c];
    slope[c] *= n.scale.As<float>()[c];
  }
  NormaliseBackwardKernel(ExtentsOf(x),
                          {n.mean.As<float>(), slope.data(), shift_mean.data(), factor.data()},
                          x.As<float>(), dy.As<float>());
}

void OnednnMaps::Combine(double a, const Tensor& x, double b, const Tensor& y) {
  CHECK(x.elements() == y.elements());
  CombineKernel(static_cast<float>(a), x.As<float>(), static_cast<float>(b), y.Span<float>());
}

void OnednnMaps::Sum(const Tensor& a, const Tensor& b, bool relu, const Tensor& y) {
  CHECK(a.shape == y.shape && b.shape == y.shape);
  SumKernel(a.As<float>(), b.As<float>(), relu, y.Span<float>());
}

void OnednnMaps::Relu(const Tensor& y) {
  ReluKernel(y.Span<float>());
}

void OnednnMaps::ReluBackward(const Tensor& y, const Tensor& dy) {
  CHECK(y.shape == dy.shape);
  ReluBackwardKernel(y.As<float>(), dy.Span<float>());
}

void OnednnMaps::PutChannels(const Tensor& part, int64_t first, const Tensor& all) {
  const MapExtents from = ExtentsOf(part), to = ExtentsOf(all);
  CHECK(from.rows == to.rows && first >= 0 && first + from.channels <= to.channels);
  CopyRowsKernel({from.rows, from.channels, from.channels, to.channels}, part.As<float>(),
                 all.As<float>() + first);
}

void OnednnMaps::TakeChannels(const Tensor& all, int64_t first, const Tensor& part) {
  const MapExtents from = ExtentsOf(all), to = ExtentsOf(part);
  CHECK(from.rows == to.rows && first >= 0 && first + to.channels <= from.channels);
  CopyRowsKernel({from.rows, to.channels, from.channels, to.channels}, all.As<float>() + first,
                 part.As<float>());
}

void OnednnMaps::SpatialSum(const Tensor& x, double factor, const Tensor& sum) {
  const int64_t batch = x.shape[0], channels = x.shape[3], rows = x.shape[1] * x.shape[2];
  CHECK(sum.shape == Shape({batch, 1, 1, channels}));
  for (int64_t b = 0; b < batch; ++b) {
    const Tensor part = {sum.As<float>() + b * channels, {channels}, DType::kFloat32};
    Store(RowSumsKernel({rows, channels}, x.As<float>() + b * rows * channels), factor, part);
  }
}

void OnednnMaps::SpatialSpread(const Tensor& x, double factor, const Tensor& y) {
  const int64_t batch = y.shape[0], channels = y.shape[3], rows = y.shape[1] * y.shape[2];
  CHECK(x.shape == Shape({batch, 1, 1, channels}));
  for (int64_t b = 0; b < batch; ++b)
    SpreadKernel({rows, channels}, static_cast<float>(factor), x.As<float>() + b * channels,
                 y.As<float>() + b * rows * channels);
}

void OnednnMaps::SoftmaxCrossEntropy(const Tensor& logits, const Tensor& labels,
                                     const Tensor& weights, const Tensor& gradient,
                                     const Tensor& loss) {
  const MapExtents e = ExtentsOf(logits);
  CHECK(logits.shape == gradient.shape && e.rows == labels.elements() &&
        weights.elements() == e.channels);
  const std::span<const uint8_t> truth = labels.Span<uint8_t>();
  CHECK(*std::max_element(truth.begin(), truth.end()) < e.channels) << "a label has no class";
  loss.As<float>()[0] = static_cast<float>(CrossEntropyKernel(
      e, logits.As<float>(), truth.data(), weights.As<float>(), gradient.As<float>()));
}

}  // namespace assay
