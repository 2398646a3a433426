// Depthwise convolutions of kernel 3 in two dimensions: half of DeepCAM's layers, bound by memory.
//
// A thread takes kWidth channels, whose nine weights each it keeps in registers, of several places
// one after the other. Sums of nine numbers, or of a strip, are in float.

#ifndef WORKER_ENGINE_BACKENDS_CUDA_DEPTHWISE_KERNELS_H_
#define WORKER_ENGINE_BACKENDS_CUDA_DEPTHWISE_KERNELS_H_

#include <cstdint>

#include "worker/engine/backends/cuda/convolution_kernels.h"
#include "worker/engine/backends/cuda/map_kernels.h"
#include "worker/engine/backends/cuda/position.h"
#include "worker/engine/backends/cuda/vec.h"

namespace assay::cuda {

inline constexpr int kDepthwiseWidth = 4;  // channels, where they can be divided by it
inline constexpr int kTaps = 9;

// Places of a map from `first` on, in order of memory.
struct Places {
  int64_t batch, h, w;
  int32_t height, width;

  ASSAY_DEVICE static Places From(int64_t first, int64_t rows, int32_t height, int32_t width) {
    const Position p = PositionOf(first, rows, 1, height, width, 1);
    return {p.batch, p.h, p.w, height, width};
  }
  ASSAY_DEVICE void Next() {
    if (++w < width) return;
    w = 0;
    if (++h < height) return;
    h = 0;
    ++batch;
  }
};

// y from x, or the gradient of x from that of y.
template <typename T, int kWidth, bool is_forward>
struct Depthwise {
  const T* from;
  const float* w;  // (3, 3, 1, channels)
  T* to;
  DirectShape s;
  ChannelTerms channels;  // as DirectForward's
  int64_t rows;           // places of `to`
  int64_t strip;          // of them, those of a thread
  int64_t count;          // strips * vectors of channels

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, count, s.out_channels / kWidth);
    const int64_t c = cell.column * kWidth, first = cell.row * strip;
    float weights[kTaps][kWidth];
    ASSAY_UNROLL
    for (int k = 0; k < kTaps * kWidth; ++k)
      weights[k / kWidth][k % kWidth] = w[k / kWidth * s.out_channels + c + k % kWidth];
    Places at = Places::From(first, rows, is_forward ? s.height.out : s.height.in,
                             is_forward ? s.width.out : s.width.in);
    for (int64_t row = first; row < first + strip && row < rows; ++row, at.Next())
      Compute(at, weights, c, to + row * s.out_channels + c);
  }

  ASSAY_DEVICE void Compute(const Places& at, const float (&weights)[kTaps][kWidth], int64_t c,
                            T* result) const {
    const int64_t height = is_forward ? s.height.in : s.height.out;
    const int64_t width = is_forward ? s.width.in : s.width.out;
    float sums[kWidth] = {};
    ASSAY_UNROLL
    for (int tap = 0; tap < kTaps; ++tap) {
      const int64_t h = Across(s.height, at.h, tap / 3), x = Across(s.width, at.w, tap % 3);
      if (h < 0 || x < 0) continue;
      const int64_t row = (at.batch * height + h) * width + x;
      const Vec<T, kWidth> vec = VecAt<kWidth>(from + row * s.out_channels + c);
      ASSAY_UNROLL
      for (int j = 0; j < kWidth; ++j)
        sums[j] += float(vec.values[j]) * weights[tap][j];
    }
    Vec<T, kWidth> vec;
    ASSAY_UNROLL
    for (int j = 0; j < kWidth; ++j)
      vec.values[j] =
          T(channels.mean == nullptr ? sums[j] : Normalised(channels.At(c + j), sums[j]));
    VecAt<kWidth>(result) = vec;
  }

  ASSAY_DEVICE static int64_t Across(const DirectAxis& axis, int64_t at, int32_t tap) {
    return is_forward ? axis.InputOf(at, tap) : axis.OutputOf(at, tap);
  }
  friend bool operator==(const Depthwise&, const Depthwise&) = default;
};

// Gradients of the weights, summed over strips of places of y.
template <typename T, int kWidth>
struct DepthwiseTaps {
  const T* x;
  const T* dy;
  float* sums;  // (strips, 3, 3, 1, channels)
  DirectShape s;
  int64_t strip;
  int64_t count;  // strips * vectors of channels

  ASSAY_DEVICE void operator()(int64_t i) const {
    const Cell cell = CellOf(i, count, s.out_channels / kWidth);
    const int64_t c = cell.column * kWidth, first = cell.row * strip;
    float gradients[kTaps][kWidth] = {};
    Places at = Places::From(first, s.rows, s.height.out, s.width.out);
    for (int64_t row = first; row < first + strip && row < s.rows; ++row, at.Next())
      AddPlace(at, VecAt<kWidth>(dy + row * s.out_channels + c), c, gradients);
    ASSAY_UNROLL
    for (int k = 0; k < kTaps * kWidth; ++k)
      sums[(cell.row * kTaps + k / kWidth) * s.out_channels + c + k % kWidth] =
          gradients[k / kWidth][k % kWidth];
  }

  ASSAY_DEVICE void AddPlace(const Places& at, const Vec<T, kWidth>& gradient, int64_t c,
                             float (&gradients)[kTaps][kWidth]) const {
    ASSAY_UNROLL
    for (int tap = 0; tap < kTaps; ++tap) {
      const int64_t h = s.height.InputOf(at.h, tap / 3), w = s.width.InputOf(at.w, tap % 3);
      if (h < 0 || w < 0) continue;
      const int64_t row = (at.batch * s.height.in + h) * s.width.in + w;
      const Vec<T, kWidth> vec = VecAt<kWidth>(x + row * s.out_channels + c);
      ASSAY_UNROLL
      for (int j = 0; j < kWidth; ++j)
        gradients[tap][j] += float(vec.values[j]) * float(gradient.values[j]);
    }
  }
  friend bool operator==(const DepthwiseTaps&, const DepthwiseTaps&) = default;
};

}  // namespace assay::cuda

#endif  // WORKER_ENGINE_BACKENDS_CUDA_DEPTHWISE_KERNELS_H_
