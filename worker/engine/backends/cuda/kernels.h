// The operations that no library has, one element at a time: the same code runs on the GPU, one
// element per thread, and in the tests on the CPU, in a loop.
//
// Each struct is one operation with its arguments; its call operator computes element `i` of
// `count`, and elements may be computed in any order and at once. Sums over many elements are a
// chain of Folds, each with far fewer results than the one before, so that the result does not
// depend on the order in which threads run. "rows" are positions of a tensor, "columns" its
// channels.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_KERNELS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <variant>

#include "common/random.h"
#include "worker/engine/backends/cuda/number.h"

namespace assay::cuda {

// Where an element lies in a (batch, depth, height, width, channels).
struct Position {
  int64_t batch, d, h, w, c;
};

template <typename Index>
ASSAY_DEVICE Position PositionOf(Index i, Index depth, Index height, Index width, Index channels) {
  const Index row = i / channels, plane = row / width, slice = plane / height;
  return {static_cast<int64_t>(slice / depth), static_cast<int64_t>(slice % depth),
          static_cast<int64_t>(plane % height), static_cast<int64_t>(row % width),
          static_cast<int64_t>(i % channels)};
}

// Of element i of `count`. Divisions of 64 bits are slow on a GPU, so they are made only where the
// tensor is that large.
ASSAY_DEVICE inline Position PositionOf(int64_t i, int64_t count, int64_t depth, int64_t height,
                                        int64_t width, int64_t channels) {
  if (count > std::numeric_limits<int32_t>::max())
    return PositionOf<int64_t>(i, depth, height, width, channels);
  return PositionOf<uint32_t>(static_cast<uint32_t>(i), static_cast<uint32_t>(depth),
                              static_cast<uint32_t>(height), static_cast<uint32_t>(width),
                              static_cast<uint32_t>(channels));
}

// y = table[counts as unsigned]; table: 65,536 values.
struct LookUp {
  const float* table;
  const int16_t* counts;
  float* y;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const { y[i] = table[static_cast<uint16_t>(counts[i])]; }
  friend bool operator==(const LookUp&, const LookUp&) = default;
};

// y = x in another type.
template <typename From, typename To>
struct Convert {
  const From* x;
  To* y;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const { y[i] = To(float(x[i])); }
  friend bool operator==(const Convert&, const Convert&) = default;
};

// y = transpose of x (rows, columns).
template <typename From, typename To>
struct Transpose {
  const From* x;
  To* y;
  int64_t rows, columns;
  int64_t count;  // rows * columns

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, 1, 1, columns, rows);
    y[i] = To(float(x[p.c * columns + p.w]));
  }
  friend bool operator==(const Transpose&, const Transpose&) = default;
};

// Extents of a (batch, depth, height, width, channels) inside a larger one, and where it begins.
struct Inset {
  int64_t depth, height, width, channels;          // of the smaller
  int64_t outer_depth, outer_height, outer_width;  // of the larger
  int64_t before_depth, before_height, before_width;

  friend bool operator==(const Inset&, const Inset&) = default;
};

// y: the larger, with zeros around x.
template <typename From, typename To>
struct Pad {
  const From* x;
  To* y;
  Inset inset;
  int64_t count;  // elements of y

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, inset.outer_depth, inset.outer_height,
                                  inset.outer_width, inset.channels);
    const int64_t d = p.d - inset.before_depth, h = p.h - inset.before_height;
    const int64_t w = p.w - inset.before_width;
    const bool is_inside =
        d >= 0 && d < inset.depth && h >= 0 && h < inset.height && w >= 0 && w < inset.width;
    const int64_t from = ((p.batch * inset.depth + d) * inset.height + h) * inset.width + w;
    y[i] = To(is_inside ? float(x[from * inset.channels + p.c]) : 0.0F);
  }
  friend bool operator==(const Pad&, const Pad&) = default;
};

// y: the smaller, cut out of x.
template <typename From, typename To>
struct Crop {
  const From* x;
  To* y;
  Inset inset;
  int64_t count;  // elements of y

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, inset.depth, inset.height, inset.width, inset.channels);
    const int64_t d = p.d + inset.before_depth, h = p.h + inset.before_height;
    const int64_t w = p.w + inset.before_width;
    const int64_t from =
        ((p.batch * inset.outer_depth + d) * inset.outer_height + h) * inset.outer_width + w;
    y[i] = To(float(x[from * inset.channels + p.c]));
  }
  friend bool operator==(const Crop&, const Crop&) = default;
};

// Extents of what is pooled by two; odd remainders are dropped.
struct PoolShape {
  int64_t depth, height, width, channels;

  friend bool operator==(const PoolShape&, const PoolShape&) = default;
};

// As Backend::PoolForward.
template <typename T>
struct PoolForward {
  const T* x;
  const float* bias;
  float* y;
  uint8_t* code;
  PoolShape shape;
  float slope;
  int64_t count;  // elements of y

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p =
        PositionOf(i, count, shape.depth / 2, shape.height / 2, shape.width / 2, shape.channels);
    const int64_t plane = (p.batch * shape.depth + p.d * 2) * shape.height + p.h * 2;
    const T* const window = x + (plane * shape.width + p.w * 2) * shape.channels + p.c;
    float max = float(window[0]);
    uint32_t best = 0;
    for (uint32_t k = 1; k < 8; ++k) {
      const int64_t offset = (int64_t{k / 4} * shape.height + k / 2 % 2) * shape.width + k % 2;
      const float value = float(window[offset * shape.channels]);
      if (value > max) max = value, best = k;
    }
    const float sum = max + bias[p.c];
    y[i] = sum > 0 ? sum : slope * sum;
    code[i] = static_cast<uint8_t>(best | (sum > 0 ? 8U : 0U));
  }
  friend bool operator==(const PoolForward&, const PoolForward&) = default;
};

// dx of Backend::PoolBackward, by elements of dx.
template <typename T>
struct PoolBackward {
  const float* dy;
  const uint8_t* code;
  T* dx;
  PoolShape shape;
  float slope;
  int64_t count;  // elements of dx

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, shape.depth, shape.height, shape.width, shape.channels);
    const int64_t width = shape.width / 2, height = shape.height / 2, depth = shape.depth / 2;
    if (p.d / 2 >= depth || p.h / 2 >= height || p.w / 2 >= width) {
      dx[i] = T(0.0F);
      return;
    }
    const int64_t plane = (p.batch * depth + p.d / 2) * height + p.h / 2;
    const int64_t from = (plane * width + p.w / 2) * shape.channels + p.c;
    const uint32_t bits = code[from];
    const auto here = static_cast<uint32_t>(p.d % 2 * 4 + p.h % 2 * 2 + p.w % 2);
    const float gradient = (bits & 8U) != 0 ? dy[from] : slope * dy[from];
    dx[i] = T((bits & 7U) == here ? gradient : 0.0F);
  }
  friend bool operator==(const PoolBackward&, const PoolBackward&) = default;
};

// Which function an activation is; Backend's Activation::Kind.
enum class Curve : int32_t { kLeakyRelu, kScaledTanh };

// As Backend::ActivationForward.
struct ActivationForward {
  float* y;
  const float* bias;
  Curve curve;
  float parameter;
  int64_t columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float sum = y[i] + bias[i % columns];
    if (curve == Curve::kLeakyRelu) {
      y[i] = sum > 0 ? sum : parameter * sum;
    } else {
      y[i] = parameter * tanhf(sum);
    }
  }
  friend bool operator==(const ActivationForward&, const ActivationForward&) = default;
};

// dy of Backend::ActivationBackward.
struct ActivationBackward {
  const float* y;
  float* dy;
  Curve curve;
  float parameter;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    if (curve == Curve::kLeakyRelu) {
      dy[i] = y[i] > 0 ? dy[i] : parameter * dy[i];
    } else {
      dy[i] *= parameter - y[i] * y[i] / parameter;
    }
  }
  friend bool operator==(const ActivationBackward&, const ActivationBackward&) = default;
};

// As Backend::Dropout.
struct Dropout {
  Stream stream;
  uint64_t first_index;
  double rate;
  float kept;  // 1 / (1 - rate)
  float* y;
  float* scale;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float draw = stream.Uniform(first_index + static_cast<uint64_t>(i));
    scale[i] = double{draw} >= rate ? kept : 0.0F;
    y[i] *= scale[i];
  }
  friend bool operator==(const Dropout&, const Dropout&) = default;
};

// x *= factor.
struct Multiply {
  const float* factor;
  float* x;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const { x[i] *= factor[i]; }
  friend bool operator==(const Multiply&, const Multiply&) = default;
};

// The gradient of Backend::SquaredError.
struct SquaredErrorGradient {
  const float* prediction;
  const float* target;
  float* gradient;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const double error = double{prediction[i]} - double{target[i]};
    gradient[i] = static_cast<float>(2 * error / static_cast<double>(count));
  }
  friend bool operator==(const SquaredErrorGradient&, const SquaredErrorGradient&) = default;
};

// As Backend::Sgd.
struct Sgd {
  float rate, momentum, decay;  // decay: 2 * l2
  float* w;
  const float* g;
  float* v;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float velocity = momentum * v[i] - rate * (g[i] + decay * w[i]);
    v[i] = velocity;
    w[i] += velocity;
  }
  friend bool operator==(const Sgd&, const Sgd&) = default;
};

// What a Fold may sum.
struct Values {
  const float* x;

  ASSAY_DEVICE double operator()(int64_t i) const { return double{x[i]}; }
  friend bool operator==(const Values&, const Values&) = default;
};
struct Squares {
  const float* x;

  ASSAY_DEVICE double operator()(int64_t i) const { return double{x[i]} * double{x[i]}; }
  friend bool operator==(const Squares&, const Squares&) = default;
};
struct SquaredDifferences {
  const float* x;
  const float* y;

  ASSAY_DEVICE double operator()(int64_t i) const {
    const double difference = double{x[i]} - double{y[i]};
    return difference * difference;
  }
  friend bool operator==(const SquaredDifferences&, const SquaredDifferences&) = default;
};
// What reaches a bias through pooling.
struct PooledGradients {
  const float* dy;
  const uint8_t* code;
  float slope;

  ASSAY_DEVICE double operator()(int64_t i) const {
    return double{(code[i] & 8U) != 0 ? dy[i] : slope * dy[i]};
  }
  friend bool operator==(const PooledGradients&, const PooledGradients&) = default;
};
struct Partials {
  const double* x;

  ASSAY_DEVICE double operator()(int64_t i) const { return x[i]; }
  friend bool operator==(const Partials&, const Partials&) = default;
};

// Sums the rows of a (rows, columns) into `results` rows: result r takes the rows r, r + results,
// r + 2 * results and so on.
template <typename Source>
struct Fold {
  Source source;
  double* sums;  // (results, columns)
  int64_t rows, results, columns;
  int64_t count;  // results * columns

  ASSAY_DEVICE void operator()(int64_t i) const {
    double sum = 0;
    for (int64_t row = i / columns; row < rows; row += results)
      sum += source(row * columns + i % columns);
    sums[i] = sum;
  }
  friend bool operator==(const Fold&, const Fold&) = default;
};

// y = factor * sum, rounded.
struct Finish {
  const double* sums;
  float* y;
  double factor;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const { y[i] = static_cast<float>(factor * sums[i]); }
  friend bool operator==(const Finish&, const Finish&) = default;
};

// A convolution in the engine's own layouts, for shapes that the library refuses. Slow.
struct DirectShape {
  int64_t depth, height, width, in_channels;  // of x
  int64_t out_depth, out_height, out_width, out_channels;
  int64_t kernel;
  int64_t before_depth, before_height, before_width;

  friend bool operator==(const DirectShape&, const DirectShape&) = default;
};

// By elements of y.
struct DirectForward {
  const float* x;
  const float* w;
  float* y;
  DirectShape s;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, s.out_depth, s.out_height, s.out_width, s.out_channels);
    double sum = 0;
    for (int64_t tap = 0; tap < s.kernel * s.kernel * s.kernel; ++tap) {
      const int64_t d = p.d + tap / (s.kernel * s.kernel) - s.before_depth;
      const int64_t h = p.h + tap / s.kernel % s.kernel - s.before_height;
      const int64_t w_at = p.w + tap % s.kernel - s.before_width;
      if (d < 0 || d >= s.depth || h < 0 || h >= s.height || w_at < 0 || w_at >= s.width) continue;
      const float* from =
          x + (((p.batch * s.depth + d) * s.height + h) * s.width + w_at) * s.in_channels;
      for (int64_t c = 0; c < s.in_channels; ++c)
        sum += double{from[c]} * double{w[(tap * s.in_channels + c) * s.out_channels + p.c]};
    }
    y[i] = static_cast<float>(sum);
  }
  friend bool operator==(const DirectForward&, const DirectForward&) = default;
};

// By elements of dx.
struct DirectData {
  const float* dy;
  const float* w;
  float* dx;
  DirectShape s;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, s.depth, s.height, s.width, s.in_channels);
    double sum = 0;
    for (int64_t tap = 0; tap < s.kernel * s.kernel * s.kernel; ++tap) {
      const int64_t d = p.d - tap / (s.kernel * s.kernel) + s.before_depth;
      const int64_t h = p.h - tap / s.kernel % s.kernel + s.before_height;
      const int64_t w_at = p.w - tap % s.kernel + s.before_width;
      if (d < 0 || d >= s.out_depth || h < 0 || h >= s.out_height || w_at < 0 ||
          w_at >= s.out_width)
        continue;
      const int64_t row = ((p.batch * s.out_depth + d) * s.out_height + h) * s.out_width + w_at;
      const float* weights = w + (tap * s.in_channels + p.c) * s.out_channels;
      for (int64_t o = 0; o < s.out_channels; ++o)
        sum += double{dy[row * s.out_channels + o]} * double{weights[o]};
    }
    dx[i] = static_cast<float>(sum);
  }
  friend bool operator==(const DirectData&, const DirectData&) = default;
};

// By elements of dw.
struct DirectWeights {
  const float* x;
  const float* dy;
  float* dw;
  int64_t batch;
  DirectShape s;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const int64_t o = i % s.out_channels, c = i / s.out_channels % s.in_channels;
    const int64_t tap = i / s.out_channels / s.in_channels;
    double sum = 0;
    for (int64_t row = 0; row < batch * s.out_depth * s.out_height * s.out_width; ++row) {
      const int64_t plane = row / (s.out_width * s.out_height);
      const int64_t d = plane % s.out_depth + tap / (s.kernel * s.kernel) - s.before_depth;
      const int64_t h =
          row / s.out_width % s.out_height + tap / s.kernel % s.kernel - s.before_height;
      const int64_t w_at = row % s.out_width + tap % s.kernel - s.before_width;
      if (d < 0 || d >= s.depth || h < 0 || h >= s.height || w_at < 0 || w_at >= s.width) continue;
      const int64_t from = ((plane / s.out_depth * s.depth + d) * s.height + h) * s.width + w_at;
      sum += double{x[from * s.in_channels + c]} * double{dy[row * s.out_channels + o]};
    }
    dw[i] = static_cast<float>(sum);
  }
  friend bool operator==(const DirectWeights&, const DirectWeights&) = default;
};

using Kernel = std::variant<
    LookUp, Convert<float, Bfloat16>, Convert<Bfloat16, float>, Transpose<float, float>,
    Transpose<float, Bfloat16>, Transpose<Bfloat16, float>, Pad<float, float>, Pad<float, Bfloat16>,
    Crop<float, float>, Crop<Bfloat16, float>, PoolForward<float>, PoolForward<Bfloat16>,
    PoolBackward<float>, PoolBackward<Bfloat16>, ActivationForward, ActivationBackward, Dropout,
    Multiply, SquaredErrorGradient, Sgd, Fold<Values>, Fold<Squares>, Fold<SquaredDifferences>,
    Fold<PooledGradients>, Fold<Partials>, Finish, DirectForward, DirectData, DirectWeights>;

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_KERNELS_H_
