// Kernels of CosmoFlow's layers: conversions between layouts, pooling, activations, the loss.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_LAYER_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_LAYER_KERNELS_H_

#include <cmath>
#include <cstdint>

#include "common/random.h"
#include "worker/engine/backends/cuda/number.h"
#include "worker/engine/backends/cuda/position.h"
#include "worker/engine/backends/cuda/vec.h"

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

// The same of places of kChannels counts each, which y has with zeros behind them.
template <int kChannels, int kStored>
struct LookUpPlaces {
  const float* table;
  const int16_t* counts;
  Bfloat16* y;
  int64_t count;  // places

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Vec<int16_t, kChannels> place = VecAt<kChannels>(counts + i * kChannels);
    Vec<Bfloat16, kStored> stored;
    ASSAY_UNROLL
    for (int c = 0; c < kStored; ++c)
      stored.values[c] = Bfloat16(
          c < kChannels ? table[static_cast<uint16_t>(place.values[c % kChannels])] : 0.0F);
    StoreVec(stored, y + i * kStored);
  }
  friend bool operator==(const LookUpPlaces&, const LookUpPlaces&) = default;
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

// y = transpose of x (rows, columns). A thread takes kColumns numbers side by side of a row, which
// lie in one or two pieces of 32 bytes, as the GPU reads them; threads beside it write beside it.
template <typename From, typename To>
struct Transpose {
  static constexpr int kColumns = 8;

  const From* x;
  To* y;
  Divisor rows;
  int64_t columns;
  int64_t count;  // rows * columns / kColumns, rounded up by rows

  static Transpose Of(const From* x, To* y, int64_t rows, int64_t columns) {
    return {x, y, rows, columns, rows * ((columns + kColumns - 1) / kColumns)};
  }

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, rows);
    const int64_t row = cell.column, first = cell.row * kColumns;
    ASSAY_UNROLL
    for (int k = 0; k < kColumns; ++k)
      if (first + k < columns)
        y[(first + k) * rows.value + row] = To(float(x[row * columns + first + k]));
  }
  friend bool operator==(const Transpose&, const Transpose&) = default;
};

// A convolution's weights (taps, in, out) as cuDNN has them, (out, taps, stored), with zeros for
// channels of x that are empty.
template <typename To>
struct PackWeights {
  const float* w;
  To* packed;
  int64_t in_channels;
  Divisor stored_channels, taps;
  int64_t out_channels;
  int64_t count;  // elements of packed

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell channel = CellOf(i, stored_channels), tap = CellOf(channel.row, taps);
    const int64_t from = (tap.column * in_channels + channel.column) * out_channels + tap.row;
    packed[i] = To(channel.column < in_channels ? w[from] : 0.0F);
  }
  friend bool operator==(const PackWeights&, const PackWeights&) = default;
};

// The reverse, without those channels.
template <typename From>
struct UnpackWeights {
  const From* packed;
  float* w;
  Divisor in_channels;
  int64_t stored_channels, taps;
  Divisor out_channels;
  int64_t count;  // elements of w

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell out = CellOf(i, out_channels), channel = CellOf(out.row, in_channels);
    w[i] = float(packed[(out.column * taps + channel.row) * stored_channels + channel.column]);
  }
  friend bool operator==(const UnpackWeights&, const UnpackWeights&) = default;
};

// Extents of a (batch, depth, height, width, channels) inside a larger one, and where it begins.
struct Inset {
  Divisor depth, height, width, channels;          // of the smaller
  Divisor outer_depth, outer_height, outer_width;  // of the larger
  int64_t before_depth, before_height, before_width;

  friend bool operator==(const Inset&, const Inset&) = default;
};

// Where the larger has what is at this position of the smaller.
ASSAY_DEVICE inline int64_t OuterIndex(const Inset& inset, const Position& p) {
  const int64_t d = p.d + inset.before_depth, h = p.h + inset.before_height;
  const int64_t w = p.w + inset.before_width;
  const int64_t at = ((p.batch * inset.outer_depth.value + d) * inset.outer_height.value + h) *
                         inset.outer_width.value +
                     w;
  return at * inset.channels.value + p.c;
}

// y: the smaller, cut out of x.
struct Crop {
  const float* x;
  float* y;
  Inset inset;
  int64_t count;  // elements of y

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, inset.depth, inset.height, inset.width, inset.channels);
    y[i] = x[OuterIndex(inset, p)];
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
    const Position p = PositionOf(i, inset.depth, inset.height, inset.width, inset.channels);
    y[OuterIndex(inset, p)] = x[i];
  }
  friend bool operator==(const Insert&, const Insert&) = default;
};

// Extents of what is pooled by two; odd remainders are dropped.
struct PoolShape {
  int64_t depth, height, width, channels;

  friend bool operator==(const PoolShape&, const PoolShape&) = default;
};

// The windows of two by two by two that a loop over them goes through, kWidth channels at once.
struct PoolWindows {
  PoolShape shape;
  Divisor depth, height, width;  // windows
  Divisor vectors;               // shape.channels / kWidth

  // The pooled ones; with `remainders` those too that are cut off at an end.
  static PoolWindows Of(const PoolShape& shape, bool remainders, int64_t channels_at_once) {
    const int64_t more = remainders ? 1 : 0;
    return {shape, (shape.depth + more) / 2, (shape.height + more) / 2, (shape.width + more) / 2,
            shape.channels / channels_at_once};
  }
  int64_t per_sample() const { return depth.value * height.value * width.value * vectors.value; }
  ASSAY_DEVICE Position At(int64_t i) const { return PositionOf(i, depth, height, width, vectors); }
  // The first channel of the first element of window `p`.
  ASSAY_DEVICE int64_t First(const Position& p, int64_t channel) const {
    const int64_t plane = (p.batch * shape.depth + p.d * 2) * shape.height + p.h * 2;
    return (plane * shape.width + p.w * 2) * shape.channels + channel;
  }
  // From there to the same channel of element `k` of 8.
  ASSAY_DEVICE int64_t Offset(int k) const {
    return ((k / 4 * shape.height + k / 2 % 2) * shape.width + k % 2) * shape.channels;
  }
  friend bool operator==(const PoolWindows&, const PoolWindows&) = default;
};

// As Backend::PoolForward, by pooled windows.
template <typename T, typename Pooled, int kWidth>
struct PoolForward {
  const T* x;
  const float* bias;
  Pooled* y;
  uint8_t* code;
  PoolWindows windows;
  float slope;
  int64_t count;  // elements of y / kWidth

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = windows.At(i);
    const int64_t channel = p.c * kWidth;
    const T* const window = x + windows.First(p, channel);
    const Vec<T, kWidth> first = VecAt<kWidth>(window);
    float max[kWidth];
    uint32_t best[kWidth] = {};
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      max[j] = FloatAt(first, j);
    ASSAY_UNROLL
    for (int k = 1; k < 8; ++k) {
      const Vec<T, kWidth> other = VecAt<kWidth>(window + windows.Offset(k));
      ASSAY_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        const float value = FloatAt(other, j);
        if (value > max[j]) max[j] = value, best[j] = static_cast<uint32_t>(k);
      }
    }
    Vec<Pooled, kWidth> result;
    Vec<uint8_t, kWidth> codes;
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      const float sum = max[j] + bias[channel + j];  // parameters lie anywhere
      result.values[j] = Pooled(sum > 0 ? sum : slope * sum);
      codes.values[j] = static_cast<uint8_t>(best[j] | (sum > 0 ? 8U : 0U));
    }
    StoreVec(result, y + i * kWidth);
    StoreVec(codes, code + i * kWidth);
  }
  friend bool operator==(const PoolForward&, const PoolForward&) = default;
};

// Adds to the places of maxima, y, which of these are positive: Backend::PoolForward's code.
struct MarkPositive {
  static constexpr int kWidth = 8;

  const Bfloat16* y;
  uint8_t* code;
  int64_t count;  // elements / kWidth

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Vec<Bfloat16, kWidth> values = VecAt<kWidth>(y + i * kWidth);
    Vec<uint8_t, kWidth> codes = VecAt<kWidth>(code + i * kWidth);
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      codes.values[j] =
          static_cast<uint8_t>((codes.values[j] & 7U) | (FloatAt(values, j) > 0 ? 8U : 0U));
    StoreVec(codes, code + i * kWidth);
  }
  friend bool operator==(const MarkPositive&, const MarkPositive&) = default;
};

// dx of Backend::PoolBackward, by windows, those that are cut off too.
template <typename T, typename Pooled, int kWidth>
struct PoolBackward {
  const Pooled* dy;
  const uint8_t* code;
  T* dx;
  PoolWindows windows;
  float slope;
  int64_t count;  // of windows, times vectors

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = windows.At(i);
    const int64_t channel = p.c * kWidth;
    T* const window = dx + windows.First(p, channel);
    const PoolShape& s = windows.shape;
    // Whether the window has the second plane, row and column: one that is cut off was not pooled.
    const bool has_d = p.d * 2 + 1 < s.depth, has_h = p.h * 2 + 1 < s.height;
    const bool has_w = p.w * 2 + 1 < s.width;
    T passed[kWidth] = {};
    Vec<uint8_t, kWidth> codes = {};
    if (has_d && has_h && has_w) {
      const int64_t plane = (p.batch * (s.depth / 2) + p.d) * (s.height / 2) + p.h;
      const int64_t from = (plane * (s.width / 2) + p.w) * s.channels + channel;
      const Vec<Pooled, kWidth> gradients = VecAt<kWidth>(dy + from);
      codes = VecAt<kWidth>(code + from);
      ASSAY_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        const float gradient = FloatAt(gradients, j);
        passed[j] = T((codes.values[j] & 8U) != 0 ? gradient : slope * gradient);
      }
    }
    ASSAY_UNROLL
    for (int k = 0; k < 8; ++k) {
      if ((k / 4 != 0 && !has_d) || (k / 2 % 2 != 0 && !has_h) || (k % 2 != 0 && !has_w)) continue;
      Vec<T, kWidth> vec;
      ASSAY_UNROLL
      for (int j = 0; j < kWidth; ++j)
        vec.values[j] = (codes.values[j] & 7) == k ? passed[j] : T(0.0F);
      StoreVec(vec, window + windows.Offset(k));
    }
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
  Divisor columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float sum = float(y[i]) + bias[CellOf(i, columns).column];
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
  Divisor columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float sum = float(y[i]) + float(bias[CellOf(i, columns).column]);
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
