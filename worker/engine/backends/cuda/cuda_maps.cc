#include "worker/engine/backends/cuda/cuda_maps.h"

#include <initializer_list>
#include <type_traits>

#include "common/log.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/cuda/cuda_convolution.h"
#include "worker/engine/backends/cuda/cuda_depthwise.h"
#include "worker/engine/backends/cuda/cuda_pointwise.h"
#include "worker/engine/backends/cuda/map_extents.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

// Calls visit(T()), where T is what the map holds.
template <typename Visit>
void WithType(const Tensor& map, const Visit& visit) {
  if (map.dtype == DType::kBfloat16) {
    visit(Bfloat16());
  } else {
    visit(float());
  }
}

template <int kWidth>
using Width = std::integral_constant<int, kWidth>;

// Calls visit(T(), Width(), RowStrides) for a kernel that goes through `maps`, of the shape of
// `map`, vectorised over channels.
template <typename Visit>
void WithRows(const Tensor& map, std::initializer_list<const void*> maps, const Visit& visit) {
  const MapExtents e = ExtentsOf(map);
  WithType(map, [&]<typename T>(T type) {
    constexpr int kMost = kVecWidth<T>;
    const bool is_vectorised = IsVectorisable(e.columns, kMost, maps);
    const int64_t vectors = is_vectorised ? e.columns / kMost : e.columns;
    const RowStrides rows = {e.rows, e.columns, RowStride(e.rows, vectors), vectors};
    if (is_vectorised) {
      visit(type, Width<kMost>(), rows);
    } else {
      visit(type, Width<1>(), rows);
    }
  });
}

template <int kWidth>
int64_t ThreadsOf(const RowStrides& rows) {
  return rows.stride * (rows.columns / kWidth);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Convolution>> CudaMaps::MakeConvolution2d(const Conv2dShape& shape) {
  if (IsCudaDepthwise(shape)) return MakeCudaDepthwise(backend_, shape);
  if (shape.kernel == 1 && shape.stride == 1 && shape.groups == 1)
    return MakeCudaPointwise(backend_, shape);
  return MakeCudaConvolution(backend_, LayoutOf(shape), backend_->map_type());
}

void CudaMaps::ChannelMoments(const Tensor& x, const Tensor& mean, const Tensor& variance) {
  const MapExtents e = ExtentsOf(x);
  CHECK(mean.elements() == e.columns && variance.elements() == e.columns);
  WithType(x, [&]<typename T>(T) {
    const Moments<T> moments = {.x = x.As<T>(),
                                .mean = mean.As<float>(),
                                .variance = variance.As<float>(),
                                .share = 1 / static_cast<double>(e.rows)};
    backend_->FoldMap("channel moments", Offsets<T>{x.As<T>()}, moments, e.rows, e.columns,
                      IsVectorisable(e.columns, kFoldWidth, {x.data}));
  });
}

void CudaMaps::Normalise(const Normalisation& n, const Tensor& x, const Tensor& y) {
  NormaliseAdd(n, x, {}, y);
}

void CudaMaps::NormaliseAdd(const Normalisation& n, const Tensor& x, const Tensor& other,
                            const Tensor& y) {
  const bool is_sum = other.data != nullptr;
  CHECK(x.shape == y.shape && (!is_sum || x.shape == other.shape));
  WithRows(x, {x.data, other.data, y.data},
           [&]<typename T, int kWidth>(T, Width<kWidth>, const RowStrides& rows) {
             backend_->Run("normalise",
                           cuda::Normalise<T, kWidth>{.x = x.As<T>(),
                                                      .other = is_sum ? other.As<T>() : nullptr,
                                                      .y = y.As<T>(),
                                                      .channels = TermsOf(n, x),
                                                      .rows = rows,
                                                      .count = ThreadsOf<kWidth>(rows)});
           });
}

void CudaMaps::NormaliseSums(const Normalisation& n, const Tensor& x, const Tensor& y,
                             const Tensor& dy, const Tensor& scale_gradient,
                             const Tensor& shift_gradient) {
  const MapExtents e = ExtentsOf(x);
  CHECK(x.shape == y.shape && x.shape == dy.shape && scale_gradient.elements() == e.columns &&
        shift_gradient.elements() == e.columns);
  WithType(x, [&]<typename T>(T) {
    backend_->FoldMap("scale and shift gradients",
                      NormalProducts<T>{x.As<T>(), dy.As<T>(), TermsOf(n, x)},
                      Both{scale_gradient.As<float>(), shift_gradient.As<float>()}, e.rows,
                      e.columns, IsVectorisable(e.columns, kFoldWidth, {x.data, dy.data}));
  });
}

void CudaMaps::NormaliseBackward(const Normalisation& n, const Tensor& x, const ChannelSums& sums,
                                 const Tensor& dy) {
  const int64_t channels = ExtentsOf(x).columns;
  CHECK(x.shape == dy.shape && sums.scale.elements() == channels &&
        sums.shift.elements() == channels);
  WithRows(
      x, {x.data, dy.data}, [&]<typename T, int kWidth>(T, Width<kWidth>, const RowStrides& rows) {
        backend_->Run("normalise backward",
                      cuda::NormaliseBackward<T, kWidth>{.x = x.As<T>(),
                                                         .dy = dy.As<T>(),
                                                         .channels = TermsOf(n, x),
                                                         .scale_sum = sums.scale.As<float>(),
                                                         .shift_sum = sums.shift.As<float>(),
                                                         .share = static_cast<float>(sums.share),
                                                         .rows = rows,
                                                         .count = ThreadsOf<kWidth>(rows)});
      });
}

void CudaMaps::MoveRunning(const RunningMoments& m) {
  CHECK(m.mean.elements() == m.running_mean.elements() &&
        m.variance.elements() == m.running_variance.elements());
  backend_->Run("running moments",
                cuda::MoveRunning{.mean = m.mean.As<float>(),
                                  .variance = m.variance.As<float>(),
                                  .running_mean = m.running_mean.As<float>(),
                                  .running_variance = m.running_variance.As<float>(),
                                  .mean_rate = static_cast<float>(m.rate),
                                  .variance_rate = static_cast<float>(m.rate * m.unbiased),
                                  .keep = static_cast<float>(1 - m.rate),
                                  .count = m.mean.elements()});
}

void CudaMaps::Combine(double a, const Tensor& x, double b, const Tensor& y) {
  CHECK(x.elements() == y.elements());
  WithType(x, [&]<typename T>(T) {
    backend_->Run("combine", cuda::Combine<T>{.a = static_cast<float>(a),
                                              .b = static_cast<float>(b),
                                              .x = x.As<T>(),
                                              .y = y.As<T>(),
                                              .count = x.elements()});
  });
}

void CudaMaps::Sum(const Tensor& a, const Tensor& b, bool relu, const Tensor& y) {
  CHECK(a.elements() == y.elements() && b.elements() == y.elements());
  WithType(y, [&]<typename T>(T) {
    const auto add = [&]<int kWidth>(Width<kWidth>) {
      backend_->Run("sum", cuda::Add<T, kWidth>{.a = a.As<T>(),
                                                .b = b.As<T>(),
                                                .y = y.As<T>(),
                                                .relu = relu,
                                                .count = y.elements() / kWidth});
    };
    WithWidth<kVecWidth<T>>(y.elements(), {a.data, b.data, y.data}, add);
  });
}

void CudaMaps::ReluBackward(const Tensor& y, const Tensor& dy) {
  CHECK(y.shape == dy.shape);
  WithType(y, [&]<typename T>(T) {
    const auto keep = [&]<int kWidth>(Width<kWidth>) {
      backend_->Run("relu", KeepPositive<T, kWidth>{y.As<T>(), dy.As<T>(), y.elements() / kWidth});
    };
    WithWidth<kVecWidth<T>>(y.elements(), {y.data, dy.data}, keep);
  });
}

void CudaMaps::Convert(const Tensor& x, const Tensor& y) {
  CHECK(x.shape == y.shape && x.dtype != y.dtype) << "x=" << x.shape.ToString();
  const int64_t count = x.elements();
  if (y.dtype == DType::kBfloat16) {
    backend_->Run("cast to bfloat16",
                  cuda::Convert<float, Bfloat16>{x.As<float>(), y.As<Bfloat16>(), count});
  } else {
    backend_->Run("cast to float32",
                  cuda::Convert<Bfloat16, float>{x.As<Bfloat16>(), y.As<float>(), count});
  }
}

void CudaMaps::PutChannels(const Tensor& part, int64_t first, const Tensor& all) {
  const MapExtents from = ExtentsOf(part), to = ExtentsOf(all);
  CHECK(from.rows == to.rows && first >= 0 && first + from.columns <= to.columns);
  WithType(all, [&]<typename T>(T) {
    backend_->Run("put channels", CopyChannels<T>{.from = part.As<T>(),
                                                  .to = all.As<T>() + first,
                                                  .from_stride = from.columns,
                                                  .to_stride = to.columns,
                                                  .columns = from.columns,
                                                  .count = part.elements()});
  });
}

void CudaMaps::TakeChannels(const Tensor& all, int64_t first, const Tensor& part) {
  const MapExtents from = ExtentsOf(all), to = ExtentsOf(part);
  CHECK(from.rows == to.rows && first >= 0 && first + to.columns <= from.columns);
  WithType(all, [&]<typename T>(T) {
    backend_->Run("take channels", CopyChannels<T>{.from = all.As<T>() + first,
                                                   .to = part.As<T>(),
                                                   .from_stride = from.columns,
                                                   .to_stride = to.columns,
                                                   .columns = to.columns,
                                                   .count = part.elements()});
  });
}

void CudaMaps::SpatialSum(const Tensor& x, double factor, const Tensor& sum) {
  const int64_t batch = x.shape[0], area = x.shape[1] * x.shape[2], channels = x.shape[3];
  CHECK(sum.shape == Shape({batch, 1, 1, channels}));
  WithType(x, [&]<typename T>(T) {
    for (int64_t b = 0; b < batch; ++b)
      backend_->SumRows<Values<T>, T>("spatial sum", Values<T>{x.As<T>() + b * area * channels},
                                      area, factor, sum.Part(b * channels, {channels}));
  });
}

void CudaMaps::SpatialSpread(const Tensor& x, double factor, const Tensor& y) {
  const int64_t channels = y.shape[3];
  CHECK(x.shape == Shape({y.shape[0], 1, 1, channels}));
  WithType(x, [&]<typename T>(T) {
    backend_->Run("spatial spread", cuda::SpatialSpread<T>{.x = x.As<T>(),
                                                           .y = y.As<T>(),
                                                           .factor = static_cast<float>(factor),
                                                           .sample = y.elements() / y.shape[0],
                                                           .columns = channels,
                                                           .count = y.elements()});
  });
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

void CudaMaps::CountClasses(const Tensor& labels, const Tensor& truth, const Tensor& counts) {
  const int64_t samples = counts.shape[1], classes = counts.shape[2];
  const int64_t area = labels.elements() / samples, columns = samples * classes;
  CHECK(counts.shape[0] == 2 && labels.shape == truth.shape && labels.shape[0] == samples);
  backend_->FoldRows("count classes",
                     ClassMatches{.labels = labels.As<uint8_t>(),
                                  .truth = truth.As<uint8_t>(),
                                  .area = area,
                                  .classes = classes},
                     Both{counts.As<float>(), counts.As<float>() + columns}, area, columns);
}

}  // namespace assay::cuda
