// Kernels of operations on maps (worker/engine/maps.h).

#ifndef WORKER_ENGINE_BACKENDS_CUDA_MAP_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_MAP_KERNELS_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "worker/engine/backends/cuda/position.h"
#include "worker/engine/backends/cuda/sum_kernels.h"

namespace assay::cuda {

// --- Batch normalisation ---

// What normalises the numbers of a channel, and what follows.
struct ChannelTerms {
  const float* mean;
  const float* variance;
  const float* scale;
  const float* shift;
  float epsilon;
  bool relu;

  ASSAY_DEVICE float InverseDeviation(int64_t column) const {
    return 1.0F / sqrtf(variance[column] + epsilon);
  }
  ASSAY_DEVICE float Normal(float x, int64_t column) const {
    return (x - mean[column]) * InverseDeviation(column);
  }
  // The result for a number that Normal gave.
  ASSAY_DEVICE float Scaled(float normal, int64_t column) const {
    const float value = normal * scale[column] + shift[column];
    return relu && value < 0 ? 0 : value;
  }
  // What reaches that number of a gradient of the result.
  ASSAY_DEVICE float Gradient(float normal, float dy, int64_t column) const {
    return !relu || normal * scale[column] + shift[column] > 0 ? dy : 0;
  }
  // The same as x * factor + addend.
  ASSAY_DEVICE float Factor(int64_t column) const {
    return scale[column] * InverseDeviation(column);
  }
  ASSAY_DEVICE float Addend(int64_t column) const {
    return shift[column] - mean[column] * Factor(column);
  }
  friend bool operator==(const ChannelTerms&, const ChannelTerms&) = default;
};

// What a Fold sums for the moments of each channel: offsets from the channel's first number, and
// their squares. Near enough to the mean that nothing cancels in a double.
template <typename T>
struct Offsets {
  using Sum = Pair;
  const T* x;

  ASSAY_DEVICE Pair operator()(const Term& t) const {
    const double offset = double{float(x[t.index])} - double{float(x[t.column])};
    return {offset, offset * offset};
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
    const float normal = channels.Normal(float(x[t.index]), t.column);
    const double gradient{channels.Gradient(normal, float(dy[t.index]), t.column)};
    return {gradient * double{normal}, gradient};
  }
  friend bool operator==(const NormalProducts&, const NormalProducts&) = default;
};

// As MapOperations::Normalise.
template <typename T>
struct Normalise {
  const T* x;
  T* y;
  ChannelTerms channels;
  int64_t columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const int64_t c = CellOf(i, count, columns).column;
    y[i] = T(channels.Scaled(channels.Normal(float(x[i]), c), c));
  }
  friend bool operator==(const Normalise&, const Normalise&) = default;
};

// As MapOperations::NormaliseBackward.
template <typename T>
struct NormaliseBackward {
  const T* x;
  T* dy;
  ChannelTerms channels;
  const float* scale_sum;
  const float* shift_sum;
  float share;
  int64_t columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const int64_t c = CellOf(i, count, columns).column;
    const float normal = channels.Normal(float(x[i]), c);
    const float means = share * (shift_sum[c] + scale_sum[c] * normal);
    dy[i] = T(channels.Factor(c) * (channels.Gradient(normal, float(dy[i]), c) - means));
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
    factor[i] = channels.Factor(i);
    addend[i] = channels.Addend(i);
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
  int64_t columns;
  int64_t count;  // weights

  ASSAY_DEVICE void operator()(int64_t i) const {
    folded[i] = T(w[i] * channels.Factor(CellOf(i, count, columns).column));
    if (i < columns) addend[i] = T(channels.Addend(i));
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
template <typename T>
struct Add {
  const T* a;
  const T* b;
  T* y;
  bool relu;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const float sum = float(a[i]) + float(b[i]);
    y[i] = T(relu && sum < 0 ? 0 : sum);
  }
  friend bool operator==(const Add&, const Add&) = default;
};

// x <- sign > 0 ? x : 0: ReLU where both are the same, else its gradient.
template <typename T>
struct KeepPositive {
  const T* sign;
  T* x;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const { x[i] = float(sign[i]) > 0 ? x[i] : T(0.0F); }
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
  int64_t columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, count, columns);
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
  int64_t area, columns;  // of one sample of y
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, 1, 1, area, columns);
    y[i] = T(factor * float(x[p.batch * columns + p.c]));
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
