#include "worker/engine/backends/cuda/cuda_maps.h"

#include <utility>

#include "common/log.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/cuda/cuda_convolution.h"

namespace assay::cuda {
namespace {

// The rows and columns of a map: positions and channels.
struct MapExtents {
  int64_t rows, columns;
};

MapExtents ExtentsOf(const Tensor& x) {
  const int64_t columns = x.shape[x.shape.rank() - 1];
  return {x.elements() / columns, columns};
}

Tensor AsMatrix(const Tensor& x) {
  const MapExtents e = ExtentsOf(x);
  return x.Reshaped({e.rows, e.columns});
}

ChannelStatistics StatisticsOf(const Normalisation& n, const Tensor& x) {
  const int64_t channels = ExtentsOf(x).columns;
  CHECK(n.mean.elements() == channels && n.variance.elements() == channels &&
        n.scale.elements() == channels && n.shift.elements() == channels)
      << "x=" << x.shape.ToString();
  return {.mean = n.mean.As<float>(),
          .variance = n.variance.As<float>(),
          .epsilon = static_cast<float>(n.epsilon)};
}

// A convolution of kernel 1 and stride 1: the pixels' matrix times the weights.
class PointwiseConvolution : public Convolution {
 public:
  PointwiseConvolution(CudaBackend* backend, const Conv2dShape& shape)
      : backend_(backend), shape_(shape) {}

  void WeightsChanged() override {}
  void Forward(const Tensor& x, const Tensor& w, const Tensor& y) override {
    CheckShapes(x, w, y);
    backend_->DenseForward(AsMatrix(x), Weights(w), AsMatrix(y));
  }
  void BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) override {
    CheckShapes(dx, w, dy);
    backend_->DenseBackwardData(AsMatrix(dy), Weights(w), AsMatrix(dx));
  }
  void BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) override {
    CheckShapes(x, dw, dy);
    backend_->DenseBackwardWeights(AsMatrix(x), AsMatrix(dy), Weights(dw));
  }

 private:
  Tensor Weights(const Tensor& w) const {
    return w.Reshaped({shape_.in_channels, shape_.out_channels});
  }
  void CheckShapes(const Tensor& x, const Tensor& w, const Tensor& y) const {
    CHECK(x.shape == shape_.x() && w.shape == shape_.w() && y.shape == shape_.y());
  }

  CudaBackend* const backend_;
  const Conv2dShape shape_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Convolution>> CudaMaps::MakeConvolution2d(const Conv2dShape& shape) {
  if (shape.kernel == 1 && shape.stride == 1 && shape.groups == 1)
    return std::make_unique<PointwiseConvolution>(backend_, shape);
  return MakeCudaConvolution(backend_, LayoutOf(shape));
}

void CudaMaps::ChannelMoments(const Tensor& x, const Tensor& mean, const Tensor& variance) {
  const MapExtents e = ExtentsOf(x);
  CHECK(mean.elements() == e.columns && variance.elements() == e.columns);
  const double share = 1 / static_cast<double>(e.rows);
  backend_->SumRows("channel means", Values{x.As<float>()}, e.rows, share, mean);
  backend_->SumRows("channel variances", SquaredOffsets{x.As<float>(), mean.As<float>()}, e.rows,
                    share, variance);
}

void CudaMaps::Normalise(const Normalisation& n, const Tensor& x, const Tensor& y) {
  CHECK(x.shape == y.shape);
  backend_->Run("normalise", cuda::Normalise{.x = x.As<float>(),
                                             .y = y.As<float>(),
                                             .channels = StatisticsOf(n, x),
                                             .scale = n.scale.As<float>(),
                                             .shift = n.shift.As<float>(),
                                             .relu = n.relu,
                                             .columns = ExtentsOf(x).columns,
                                             .count = x.elements()});
}

void CudaMaps::NormaliseSums(const Normalisation& n, const Tensor& x, const Tensor& y,
                             const Tensor& dy, const Tensor& scale_gradient,
                             const Tensor& shift_gradient) {
  const MapExtents e = ExtentsOf(x);
  CHECK(x.shape == y.shape && x.shape == dy.shape && scale_gradient.elements() == e.columns &&
        shift_gradient.elements() == e.columns);
  if (n.relu) ReluBackward(y, dy);
  backend_->SumRows("scale gradient",
                    NormalProducts{x.As<float>(), dy.As<float>(), StatisticsOf(n, x)}, e.rows, 1,
                    scale_gradient);
  backend_->SumRows("shift gradient", Values{dy.As<float>()}, e.rows, 1, shift_gradient);
}

void CudaMaps::NormaliseBackward(const Normalisation& n, const Tensor& x, const Tensor& scale_mean,
                                 const Tensor& shift_mean, const Tensor& dy) {
  const int64_t channels = ExtentsOf(x).columns;
  CHECK(x.shape == dy.shape && scale_mean.elements() == channels &&
        shift_mean.elements() == channels);
  backend_->Run("normalise backward", cuda::NormaliseBackward{.x = x.As<float>(),
                                                              .dy = dy.As<float>(),
                                                              .channels = StatisticsOf(n, x),
                                                              .scale = n.scale.As<float>(),
                                                              .scale_mean = scale_mean.As<float>(),
                                                              .shift_mean = shift_mean.As<float>(),
                                                              .columns = channels,
                                                              .count = x.elements()});
}

void CudaMaps::Combine(double a, const Tensor& x, double b, const Tensor& y) {
  CHECK(x.elements() == y.elements());
  backend_->Run("combine", cuda::Combine{.a = static_cast<float>(a),
                                         .b = static_cast<float>(b),
                                         .x = x.As<float>(),
                                         .y = y.As<float>(),
                                         .count = x.elements()});
}

void CudaMaps::ReluBackward(const Tensor& y, const Tensor& dy) {
  CHECK(y.shape == dy.shape);
  backend_->Run("relu", KeepPositive{y.As<float>(), dy.As<float>(), y.elements()});
}

void CudaMaps::PutChannels(const Tensor& part, int64_t first, const Tensor& all) {
  const MapExtents from = ExtentsOf(part), to = ExtentsOf(all);
  CHECK(from.rows == to.rows && first >= 0 && first + from.columns <= to.columns);
  backend_->Run("put channels", CopyChannels{.from = part.As<float>(),
                                             .to = all.As<float>() + first,
                                             .from_stride = from.columns,
                                             .to_stride = to.columns,
                                             .columns = from.columns,
                                             .count = part.elements()});
}

void CudaMaps::TakeChannels(const Tensor& all, int64_t first, const Tensor& part) {
  const MapExtents from = ExtentsOf(all), to = ExtentsOf(part);
  CHECK(from.rows == to.rows && first >= 0 && first + to.columns <= from.columns);
  backend_->Run("take channels", CopyChannels{.from = all.As<float>() + first,
                                              .to = part.As<float>(),
                                              .from_stride = from.columns,
                                              .to_stride = to.columns,
                                              .columns = to.columns,
                                              .count = part.elements()});
}

void CudaMaps::SpatialSum(const Tensor& x, double factor, const Tensor& sum) {
  const int64_t batch = x.shape[0], area = x.shape[1] * x.shape[2], channels = x.shape[3];
  CHECK(sum.shape == Shape({batch, 1, 1, channels}));
  for (int64_t b = 0; b < batch; ++b)
    backend_->SumRows("spatial sum", Values{x.As<float>() + b * area * channels}, area, factor,
                      {sum.As<float>() + b * channels, {channels}, DType::kFloat32});
}

void CudaMaps::SpatialSpread(const Tensor& x, double factor, const Tensor& y) {
  const int64_t channels = y.shape[3];
  CHECK(x.shape == Shape({y.shape[0], 1, 1, channels}));
  backend_->Run("spatial spread", cuda::SpatialSpread{.x = x.As<float>(),
                                                      .y = y.As<float>(),
                                                      .factor = static_cast<float>(factor),
                                                      .area = y.shape[1] * y.shape[2],
                                                      .columns = channels,
                                                      .count = y.elements()});
}

void CudaMaps::SoftmaxCrossEntropy(const Tensor& logits, const Tensor& labels,
                                   const Tensor& weights, const Tensor& gradient,
                                   const Tensor& loss) {
  const MapExtents e = ExtentsOf(logits);
  CHECK(logits.shape == gradient.shape && e.rows == labels.elements() &&
        weights.elements() == e.columns && loss.elements() == 1);
  backend_->Run("loss gradient", CrossEntropyGradient{.logits = logits.As<float>(),
                                                      .labels = labels.As<uint8_t>(),
                                                      .weights = weights.As<float>(),
                                                      .gradient = gradient.As<float>(),
                                                      .columns = e.columns,
                                                      .count = e.rows});
  backend_->SumRows("loss",
                    CrossEntropy{.logits = logits.As<float>(),
                                 .labels = labels.As<uint8_t>(),
                                 .weights = weights.As<float>(),
                                 .columns = e.columns},
                    e.rows, 1 / static_cast<double>(e.rows), loss);
}

void CudaMaps::Argmax(const Tensor& logits, const Tensor& labels) {
  const MapExtents e = ExtentsOf(logits);
  CHECK(e.rows == labels.elements());
  backend_->Run("argmax", cuda::Argmax{.logits = logits.As<float>(),
                                       .labels = labels.As<uint8_t>(),
                                       .columns = e.columns,
                                       .count = e.rows});
}

}  // namespace assay::cuda
