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

// What makes the numbers of a channel normal.
struct ChannelStatistics {
  const float* mean;
  const float* variance;
  float epsilon;

  ASSAY_DEVICE float InverseDeviation(int64_t column) const {
    return 1.0F / sqrtf(variance[column] + epsilon);
  }
  ASSAY_DEVICE float Normal(float x, int64_t column) const {
    return (x - mean[column]) * InverseDeviation(column);
  }
  friend bool operator==(const ChannelStatistics&, const ChannelStatistics&) = default;
};

// What a Fold sums for the variance of each channel.
struct SquaredOffsets {
  const float* x;
  const float* mean;

  ASSAY_DEVICE double operator()(const Term& t) const {
    const double offset = double{x[t.index]} - double{mean[t.column]};
    return offset * offset;
  }
  friend bool operator==(const SquaredOffsets&, const SquaredOffsets&) = default;
};

// What a Fold sums for the gradient of each scale.
struct NormalProducts {
  const float* x;
  const float* dy;
  ChannelStatistics channels;

  ASSAY_DEVICE double operator()(const Term& t) const {
    return double{dy[t.index]} * double{channels.Normal(x[t.index], t.column)};
  }
  friend bool operator==(const NormalProducts&, const NormalProducts&) = default;
};

// As MapOperations::Normalise.
struct Normalise {
  const float* x;
  float* y;
  ChannelStatistics channels;
  const float* scale;
  const float* shift;
  bool relu;
  int64_t columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const int64_t c = CellOf(i, count, columns).column;
    const float value = channels.Normal(x[i], c) * scale[c] + shift[c];
    y[i] = relu && value < 0 ? 0 : value;
  }
  friend bool operator==(const Normalise&, const Normalise&) = default;
};

// As MapOperations::NormaliseBackward.
struct NormaliseBackward {
  const float* x;
  float* dy;
  ChannelStatistics channels;
  const float* scale;
  const float* scale_mean;
  const float* shift_mean;
  int64_t columns;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const int64_t c = CellOf(i, count, columns).column;
    const float rest = dy[i] - shift_mean[c] - scale_mean[c] * channels.Normal(x[i], c);
    dy[i] = scale[c] * channels.InverseDeviation(c) * rest;
  }
  friend bool operator==(const NormaliseBackward&, const NormaliseBackward&) = default;
};

// --- Element by element ---

// y <- a * x + b * y; with b = 0 y is not read.
struct Combine {
  float a, b;
  const float* x;
  float* y;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const { y[i] = a * x[i] + (b == 0 ? 0 : b * y[i]); }
  friend bool operator==(const Combine&, const Combine&) = default;
};

// x <- sign > 0 ? x : 0: ReLU where both are the same, else its gradient.
struct KeepPositive {
  const float* sign;
  float* x;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const { x[i] = sign[i] > 0 ? x[i] : 0; }
  friend bool operator==(const KeepPositive&, const KeepPositive&) = default;
};

// --- Between maps of different extents ---

// Copies `columns` channels; each side has its own number of channels, and its address is that of
// the first to copy.
struct CopyChannels {
  const float* from;
  float* to;
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
struct SpatialSpread {
  const float* x;
  float* y;
  float factor;
  int64_t area, columns;  // of one sample of y
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, 1, 1, area, columns);
    y[i] = factor * x[p.batch * columns + p.c];
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
