// Convolutions in the engine's own layouts: those in groups, and others that the library refuses.
// Slow where each result is a sum over many channels.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_CONVOLUTION_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_CONVOLUTION_KERNELS_H_

#include <cstdint>

#include "worker/engine/backends/cuda/map_kernels.h"
#include "worker/engine/backends/cuda/position.h"
#include "worker/engine/backends/cuda/sum_kernels.h"

namespace assay::cuda {

// One axis of a convolution. A place on the other tensor is negative where there is none.
struct DirectAxis {
  int32_t in = 1, out = 1;  // extents of x and y
  int32_t kernel = 1;       // taps
  int32_t before = 0;       // zeros in front of x
  int32_t stride = 1, dilation = 1;

  // What y's `at` reads of x through `tap`.
  ASSAY_DEVICE int32_t InputOf(int64_t at, int32_t tap) const {
    const int32_t place = static_cast<int32_t>(at) * stride + tap * dilation - before;
    return place < in ? place : -1;
  }
  // Which of y reads x's `at` through `tap`.
  ASSAY_DEVICE int32_t OutputOf(int64_t at, int32_t tap) const {
    const int32_t place = static_cast<int32_t>(at) + before - tap * dilation;
    if (place < 0 || place % stride != 0) return -1;
    return place / stride < out ? place / stride : -1;
  }
  friend bool operator==(const DirectAxis&, const DirectAxis&) = default;
};

// Tensors as in backend.h and maps.h.
struct DirectShape {
  DirectAxis depth, height, width;
  int64_t in_channels, out_channels;
  int64_t in_group, out_group;  // channels of one group
  int64_t rows;                 // positions of y
  int64_t weights;              // elements of w

  friend bool operator==(const DirectShape&, const DirectShape&) = default;
};

// Calls visit(tap, row) for each tap of the kernel through which position `p` of one tensor touches
// the other, and for the row there: of x if p is y's, else of y.
template <bool is_output, typename Visit>
ASSAY_DEVICE void ForEachTap(const DirectShape& s, const Position& p, const Visit& visit) {
  const auto across = [](const DirectAxis& axis, int64_t at, int32_t tap) {
    return is_output ? axis.InputOf(at, tap) : axis.OutputOf(at, tap);
  };
  const int64_t depth = is_output ? s.depth.in : s.depth.out;
  const int64_t height = is_output ? s.height.in : s.height.out;
  const int64_t width = is_output ? s.width.in : s.width.out;
  int64_t tap = 0;
  for (int32_t i = 0; i < s.depth.kernel * s.height.kernel; ++i, tap += s.width.kernel) {
    const int64_t d = across(s.depth, p.d, i / s.height.kernel);
    const int64_t h = across(s.height, p.h, i % s.height.kernel);
    if (d < 0 || h < 0) continue;
    for (int32_t j = 0; j < s.width.kernel; ++j) {
      const int64_t w = across(s.width, p.w, j);
      if (w >= 0) visit(tap + j, ((p.batch * depth + d) * height + h) * width + w);
    }
  }
}

ASSAY_DEVICE inline float Normalised(const ChannelTerm& channel, float value) {
  return channel.Scaled(channel.Normal(value));
}

// By elements of y.
template <typename T>
struct DirectForward {
  const T* x;
  const float* w;
  T* y;
  DirectShape s;
  ChannelTerms channels;  // normalise y, unless they have no mean
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, s.depth.out, s.height.out, s.width.out, s.out_channels);
    const int64_t first = p.c / s.out_group * s.in_group;
    double sum = 0;
    ForEachTap<true>(s, p, [&](int64_t tap, int64_t row) {
      const T* from = x + row * s.in_channels + first;
      const float* weights = w + tap * s.in_group * s.out_channels + p.c;
      for (int64_t c = 0; c < s.in_group; ++c)
        sum += double{float(from[c])} * double{weights[c * s.out_channels]};
    });
    const auto value = static_cast<float>(sum);
    y[i] = T(channels.mean == nullptr ? value : Normalised(channels.At(p.c), value));
  }
  friend bool operator==(const DirectForward&, const DirectForward&) = default;
};

// By elements of dx.
template <typename T>
struct DirectData {
  const T* dy;
  const float* w;
  T* dx;
  DirectShape s;
  int64_t count;

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Position p = PositionOf(i, count, s.depth.in, s.height.in, s.width.in, s.in_channels);
    const int64_t first = p.c / s.in_group * s.out_group, inner = p.c % s.in_group;
    double sum = 0;
    ForEachTap<false>(s, p, [&](int64_t tap, int64_t row) {
      const T* from = dy + row * s.out_channels + first;
      const float* weights = w + (tap * s.in_group + inner) * s.out_channels + first;
      for (int64_t c = 0; c < s.out_group; ++c)
        sum += double{float(from[c])} * double{weights[c]};
    });
    dx[i] = T(static_cast<float>(sum));
  }
  friend bool operator==(const DirectData&, const DirectData&) = default;
};

// What a Fold sums for the gradients of the weights from `first` on: its rows are positions of y,
// its columns these weights.
template <typename T>
struct TapProducts {
  using Sum = double;
  const T* x;
  const T* dy;
  DirectShape s;
  int64_t first;

  ASSAY_DEVICE double operator()(const Term& t) const {
    // (kernel, kernel, kernel, in_group, out_channels)
    const Position w = PositionOf(first + t.column, s.weights, s.height.kernel, s.width.kernel,
                                  s.in_group, s.out_channels);
    const Position y = PositionOf(t.row, s.rows, s.depth.out, s.height.out, s.width.out, 1);
    const int64_t d = s.depth.InputOf(y.d, static_cast<int32_t>(w.batch));
    const int64_t h = s.height.InputOf(y.h, static_cast<int32_t>(w.d));
    const int64_t at = s.width.InputOf(y.w, static_cast<int32_t>(w.h));
    if (d < 0 || h < 0 || at < 0) return 0;
    const int64_t row = ((y.batch * s.depth.in + d) * s.height.in + h) * s.width.in + at;
    const int64_t c = w.c / s.out_group * s.in_group + w.w;
    return double{float(x[row * s.in_channels + c])} *
           double{float(dy[t.row * s.out_channels + w.c])};
  }
  friend bool operator==(const TapProducts&, const TapProducts&) = default;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_CONVOLUTION_KERNELS_H_
