// Kernels of CosmoFlow's layers: conversions between layouts, pooling, activations, the loss.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_LAYER_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_LAYER_KERNELS_H_

#include <cmath>
#include <cstdint>

#include "common/random.h"
#include "worker/engine/backends/cuda/number.h"
#include "worker/engine/backends/cuda/position.h"

namespace assay::cuda {

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

// Where the larger has what is at this position of the smaller.
ASSAY_DEVICE inline int64_t OuterIndex(const Inset& inset, const Position& p) {
  const int64_t d = p.d + inset.before_depth, h = p.h + inset.before_height;
  const int64_t w = p.w + inset.before_width;
  const int64_t at =
      ((p.batch * inset.outer_depth + d) * inset.outer_height + h) * inset.outer_width + w;
  return at * inset.channels + p.c;
}

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
    y[i] = To(float(x[OuterIndex(inset, p)]));
  }
  friend bool operator==(const Crop&, const Crop&) = default;
};

// x: the smaller, put into y, which stays as it is around it.
struct Insert {
  const float* x;
  float* y;
  Inset inset;
  int64_t count;  // elements of x

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, inset.depth, inset.height, inset.width, inset.channels);
    y[OuterIndex(inset, p)] = x[i];
  }
  friend bool operator==(const Insert&, const Insert&) = default;
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
template <typename T>
struct ActivationForward {
  T* y;
  const float* bias;
  Curve curve;
  float parameter;
  int64_t columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float sum = float(y[i]) + bias[i % columns];
    if (curve == Curve::kLeakyRelu) {
      y[i] = T(sum > 0 ? sum : parameter * sum);
    } else {
      y[i] = T(parameter * tanhf(sum));
    }
  }
  friend bool operator==(const ActivationForward&, const ActivationForward&) = default;
};

// dy of Backend::ActivationBackward.
template <typename T>
struct ActivationBackward {
  const T* y;
  T* dy;
  Curve curve;
  float parameter;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float value = float(y[i]), gradient = float(dy[i]);
    if (curve == Curve::kLeakyRelu) {
      dy[i] = T(value > 0 ? gradient : parameter * gradient);
    } else {
      dy[i] = T(gradient * (parameter - value * value / parameter));
    }
  }
  friend bool operator==(const ActivationBackward&, const ActivationBackward&) = default;
};

// y <- y + bias, then ReLU if asked: what a product's epilogue does where the library has none.
template <typename T>
struct AddBias {
  T* y;
  const T* bias;
  bool relu;
  int64_t columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float sum = float(y[i]) + float(bias[i % columns]);
    y[i] = T(relu && sum < 0 ? 0 : sum);
  }
  friend bool operator==(const AddBias&, const AddBias&) = default;
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

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_LAYER_KERNELS_H_
