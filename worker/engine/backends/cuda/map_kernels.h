// Kernels of operations on maps (worker/engine/maps.h).

#ifndef WORKER_ENGINE_BACKENDS_CUDA_MAP_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_MAP_KERNELS_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "worker/engine/backends/cuda/position.h"
#include "worker/engine/backends/cuda/sum_kernels.h"
#include "worker/engine/backends/cuda/vec.h"

namespace assay::cuda {

// --- Batch normalisation ---

// What normalises the numbers of one channel, and what follows.
struct ChannelTerm {
  float mean, inverse_deviation, scale, shift;
  bool relu;

  ASSAY_DEVICE float Normal(float x) const { return (x - mean) * inverse_deviation; }
  // The result for a number that Normal gave, and with what is added to it.
  ASSAY_DEVICE float Scaled(float normal, float other = 0) const {
    const float value = normal * scale + shift + other;
    return relu && value < 0 ? 0 : value;
  }
  // What reaches that number of a gradient of the result.
  ASSAY_DEVICE float Gradient(float normal, float dy) const {
    return !relu || normal * scale + shift > 0 ? dy : 0;
  }
  // Normal and Scaled are x * factor + addend, but for ReLU.
  ASSAY_DEVICE float Factor() const { return scale * inverse_deviation; }
  ASSAY_DEVICE float Addend() const { return shift - mean * Factor(); }
};

// Of all channels.
struct ChannelTerms {
  const float* mean;
  const float* variance;
  const float* scale;
  const float* shift;
  float epsilon;
  bool relu;

  ASSAY_DEVICE ChannelTerm At(int64_t column) const {
    return {mean[column], 1.0F / sqrtf(variance[column] + epsilon), scale[column], shift[column],
            relu};
  }
  friend bool operator==(const ChannelTerms&, const ChannelTerms&) = default;
};

// Which rows and columns a thread takes: kWidth columns side by side, whose terms stay in
// registers, of every stride-th row.
struct RowStrides {
  int64_t rows, columns, stride;
  Divisor vectors;  // columns / kWidth

  // Calls visit(first element of a Vec) for those of thread `cell`.
  template <typename Visit>
  ASSAY_DEVICE void ForEach(const Cell& cell, int64_t first_column, const Visit& visit) const {
    for (int64_t row = cell.row; row < rows; row += stride)
      visit(row * columns + first_column);
  }
  friend bool operator==(const RowStrides&, const RowStrides&) = default;
};

// What a Fold sums for the moments of each channel: offsets from the channel's first number, and
// their squares. Near enough to the mean that nothing cancels in a double.
template <typename T>
struct Offsets {
  using Sum = Pair;
  const T* x;

  ASSAY_DEVICE Pair operator()(const Term& t) const {
    return Of(float(x[t.index]), float(x[t.column]));
  }
  ASSAY_DEVICE static Pair Of(float value, float first) {
    const double offset = double{value} - double{first};
    return {offset, offset * offset};
  }

  // For VecFold: first numbers, and what a row adds.
  template <int kWidth>
  ASSAY_DEVICE Vec<T, kWidth> At(int64_t column) const {
    return VecAt<kWidth>(x + column);
  }
  template <int kWidth>
  ASSAY_DEVICE void Add(int64_t index, const Vec<T, kWidth>& firsts, Pair (&sums)[kWidth]) const {
    const Vec<T, kWidth> vec = VecAt<kWidth>(x + index);
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      sums[j] += Of(FloatAt(vec, j), FloatAt(firsts, j));
  }
  friend bool operator==(const Offsets&, const Offsets&) = default;
};

// Mean and biased variance from these sums.
template <typename T>
struct Moments {
  const T* x;
  float* mean;
  float* variance;
  double share;  // 1 / rows

  ASSAY_DEVICE void operator()(int64_t column, const Pair& sum) const {
    const double offset = sum.first * share;
    const double square = sum.second * share - offset * offset;
    mean[column] = static_cast<float>(double{float(x[column])} + offset);
    variance[column] = static_cast<float>(square > 0 ? square : 0);
  }
  friend bool operator==(const Moments&, const Moments&) = default;
};

// What a Fold sums for the gradients of each scale and shift.
template <typename T>
struct NormalProducts {
  using Sum = Pair;
  const T* x;
  const T* dy;
  ChannelTerms channels;

  ASSAY_DEVICE Pair operator()(const Term& t) const {
    return Of(channels.At(t.column), float(x[t.index]), float(dy[t.index]));
  }
  ASSAY_DEVICE static Pair Of(const ChannelTerm& channel, float value, float incoming) {
    const float normal = channel.Normal(value);
    const double gradient{channel.Gradient(normal, incoming)};
    return {gradient * double{normal}, gradient};
  }

  // For VecFold.
  template <int kWidth>
  struct Terms {
    ChannelTerm of[kWidth];
  };
  template <int kWidth>
  ASSAY_DEVICE Terms<kWidth> At(int64_t column) const {
    Terms<kWidth> terms;
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      terms.of[j] = channels.At(column + j);
    return terms;
  }
  template <int kWidth>
  ASSAY_DEVICE void Add(int64_t index, const Terms<kWidth>& terms, Pair (&sums)[kWidth]) const {
    const Vec<T, kWidth> values = VecAt<kWidth>(x + index), dys = VecAt<kWidth>(dy + index);
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      sums[j] += Of(terms.of[j], FloatAt(values, j), FloatAt(dys, j));
  }
  friend bool operator==(const NormalProducts&, const NormalProducts&) = default;
};

// As MapOperations::Normalise, or NormaliseAdd if there is another.
template <typename T, int kWidth>
struct Normalise {
  const T* x;
  const T* other;  // or null
  T* y;
  ChannelTerms channels;
  RowStrides rows;
  int64_t count;  // rows.stride * rows.columns / kWidth

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, rows.vectors);
    ChannelTerm terms[kWidth];
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      terms[j] = channels.At(cell.column * kWidth + j);
    rows.ForEach(cell, cell.column * kWidth, [&](int64_t at) {
      Vec<T, kWidth> vec = VecAt<kWidth>(x + at), added = {};
      if (other != nullptr) added = VecAt<kWidth>(other + at);
      ASSAY_UNROLL
      for (int j = 0; j < kWidth; ++j)
        vec.values[j] = T(terms[j].Scaled(terms[j].Normal(FloatAt(vec, j)), FloatAt(added, j)));
      StoreVec(vec, y + at);
    });
  }
  friend bool operator==(const Normalise&, const Normalise&) = default;
};

// As MapOperations::NormaliseBackward.
template <typename T, int kWidth>
struct NormaliseBackward {
  const T* x;
  T* dy;
  ChannelTerms channels;
  const float* scale_sum;
  const float* shift_sum;
  float share;
  RowStrides rows;
  int64_t count;  // as Normalise's

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, rows.vectors);
    ChannelTerm terms[kWidth];
    float scale_means[kWidth], shift_means[kWidth];
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      const int64_t column = cell.column * kWidth + j;
      terms[j] = channels.At(column);
      scale_means[j] = share * scale_sum[column];
      shift_means[j] = share * shift_sum[column];
    }
    rows.ForEach(cell, cell.column * kWidth, [&](int64_t at) {
      const Vec<T, kWidth> from = VecAt<kWidth>(x + at);
      Vec<T, kWidth> gradient = VecAt<kWidth>(dy + at);
      ASSAY_UNROLL
      for (int j = 0; j < kWidth; ++j) {
        const float normal = terms[j].Normal(FloatAt(from, j));
        const float cut = terms[j].Gradient(normal, FloatAt(gradient, j));
        const float rest = cut - shift_means[j] - scale_means[j] * normal;
        gradient.values[j] = T(terms[j].Factor() * rest);
      }
      StoreVec(gradient, dy + at);
    });
  }
  friend bool operator==(const NormaliseBackward&, const NormaliseBackward&) = default;
};

// As MapOperations::MoveRunning.
struct MoveRunning {
  const float* mean;
  const float* variance;
  float* running_mean;
  float* running_variance;
  float mean_rate, variance_rate, keep;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    running_mean[i] = mean_rate * mean[i] + keep * running_mean[i];
    running_variance[i] = variance_rate * variance[i] + keep * running_variance[i];
  }
  friend bool operator==(const MoveRunning&, const MoveRunning&) = default;
};

// What a convolution's channels are multiplied by and what is added so that they come out normal.
struct FoldChannels {
  ChannelTerms channels;
  float* factor;
  float* addend;
  int64_t count;  // channels

  ASSAY_DEVICE void operator()(int64_t i) const {
    const ChannelTerm channel = channels.At(i);
    factor[i] = channel.Factor();
    addend[i] = channel.Addend();
  }
  friend bool operator==(const FoldChannels&, const FoldChannels&) = default;
};

// The same with the factor inside of a matrix of weights (in, columns).
template <typename T>
struct FoldWeights {
  const float* w;
  ChannelTerms channels;
  T* folded;
  T* addend;
  Divisor columns;
  int64_t count;  // weights

  ASSAY_DEVICE void operator()(int64_t i) const {
    folded[i] = T(w[i] * channels.At(CellOf(i, columns).column).Factor());
    if (i < columns.value) addend[i] = T(channels.At(i).Addend());
  }
  friend bool operator==(const FoldWeights&, const FoldWeights&) = default;
};

// --- Element by element ---

// y <- a * x + b * y; with b = 0 y is not read.
template <typename T>
struct Combine {
  float a, b;
  const T* x;
  T* y;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    y[i] = T(a * float(x[i]) + (b == 0 ? 0 : b * float(y[i])));
  }
  friend bool operator==(const Combine&, const Combine&) = default;
};

// As MapOperations::Sum.
template <typename T, int kWidth>
struct Add {
  const T* a;
  const T* b;
  T* y;
  bool relu;
  int64_t count;  // vectors

  ASSAY_DEVICE void operator()(int64_t i) const {
    Vec<T, kWidth> vec = VecAt<kWidth>(a + i * kWidth);
    const Vec<T, kWidth> other = VecAt<kWidth>(b + i * kWidth);
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j) {
      const float sum = FloatAt(vec, j) + FloatAt(other, j);
      vec.values[j] = T(relu && sum < 0 ? 0 : sum);
    }
    StoreVec(vec, y + i * kWidth);
  }
  friend bool operator==(const Add&, const Add&) = default;
};

// x <- sign > 0 ? x : 0: ReLU where both are the same, else its gradient.
template <typename T, int kWidth>
struct KeepPositive {
  const T* sign;
  T* x;
  int64_t count;  // vectors

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Vec<T, kWidth> signs = VecAt<kWidth>(sign + i * kWidth);
    Vec<T, kWidth> vec = VecAt<kWidth>(x + i * kWidth);
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      vec.values[j] = FloatAt(signs, j) > 0 ? vec.values[j] : T(0.0F);
    StoreVec(vec, x + i * kWidth);
  }
  friend bool operator==(const KeepPositive&, const KeepPositive&) = default;
};

// --- Between maps of different extents ---

// Copies `columns` channels; each side has its own number of channels, and its address is that of
// the first to copy.
template <typename T>
struct CopyChannels {
  const T* from;
  T* to;
  int64_t from_stride, to_stride;
  Divisor columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, columns);
    to[cell.row * to_stride + cell.column] = from[cell.row * from_stride + cell.column];
  }
  friend bool operator==(const CopyChannels&, const CopyChannels&) = default;
};

// As MapOperations::SpatialSpread.
template <typename T>
struct SpatialSpread {
  const T* x;
  T* y;
  float factor;
  Divisor sample, columns;  // elements of one of y
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const int64_t batch = sample.Quotient(i), column = CellOf(i, columns).column;
    y[i] = T(factor * float(x[batch * columns.value + column]));
  }
  friend bool operator==(const SpatialSpread&, const SpatialSpread&) = default;
};

// --- Loss: rows are pixels, columns classes ---

// The logarithm of the sum of exponentials.
ASSAY_DEVICE inline double LogSumExp(const float* scores, int64_t columns) {
  float largest = scores[0];
  for (int64_t c = 1; c < columns; ++c)
    largest = scores[c] > largest ? scores[c] : largest;
  double sum = 0;
  for (int64_t c = 0; c < columns; ++c)
    sum += exp(double{scores[c]} - double{largest});
  return double{largest} + log(sum);
}

// What a Fold sums for MapOperations::SoftmaxCrossEntropy. A label that is no class makes the loss
// a NaN, which ends the run.
struct CrossEntropy {
  using Sum = double;
  const float* logits;
  const uint8_t* labels;
  const float* weights;
  int64_t columns;

  ASSAY_DEVICE double operator()(const Term& t) const {
    const int64_t truth = labels[t.row];
    if (truth >= columns) return std::numeric_limits<double>::quiet_NaN();
    const float* scores = logits + t.row * columns;
    return double{weights[truth]} * (LogSumExp(scores, columns) - double{scores[truth]});
  }
  friend bool operator==(const CrossEntropy&, const CrossEntropy&) = default;
};

// Its gradient, by pixels.
struct CrossEntropyGradient {
  const float* logits;
  const uint8_t* labels;
  const float* weights;
  float* gradient;
  int64_t columns;
  int64_t count;  // pixels

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float* scores = logits + i * columns;
    const int64_t truth = labels[i];
    const double total = LogSumExp(scores, columns);
    const double weight = truth < columns ? double{weights[truth]} / static_cast<double>(count) : 0;
    for (int64_t c = 0; c < columns; ++c) {
      const double probability = exp(double{scores[c]} - total);
      gradient[i * columns + c] = static_cast<float>(weight * (probability - (c == truth ? 1 : 0)));
    }
  }
  friend bool operator==(const CrossEntropyGradient&, const CrossEntropyGradient&) = default;
};

// What a Fold sums for MapOperations::CountClasses: its rows are a sample's pixels, its columns the
// classes of all samples.
struct ClassMatches {
  using Sum = Pair;
  const uint8_t* labels;
  const uint8_t* truth;
  int64_t area, classes;

  ASSAY_DEVICE Pair operator()(const Term& t) const {
    const int64_t sample = t.column / classes, at = sample * area + t.row;
    const auto of = static_cast<uint8_t>(t.column - sample * classes);
    const bool is_seen = labels[at] == of, is_true = truth[at] == of;
    return {is_seen && is_true ? 1.0 : 0.0, is_seen || is_true ? 1.0 : 0.0};
  }
  friend bool operator==(const ClassMatches&, const ClassMatches&) = default;
};

// As MapOperations::Argmax, by pixels.
struct Argmax {
  const float* logits;
  uint8_t* labels;
  int64_t columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float* scores = logits + i * columns;
    int64_t best = 0;
    for (int64_t c = 1; c < columns; ++c)
      best = scores[c] > scores[best] ? c : best;
    labels[i] = static_cast<uint8_t>(best);
  }
  friend bool operator==(const Argmax&, const Argmax&) = default;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_MAP_KERNELS_H_
