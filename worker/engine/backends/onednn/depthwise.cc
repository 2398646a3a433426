#include "worker/engine/backends/onednn/depthwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/log.h"
#include "worker/engine/backends/onednn/vector_clones.h"

namespace assay {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kMaxTaps = DepthwiseConvolution::kMaxKernel * DepthwiseConvolution::kMaxKernel;
// Rows of the output are dealt to so many partial sums of the weights' gradient.
constexpr int64_t kMaxParts = 32;

using Floats = float __attribute__((vector_size(sizeof(float) * kLanes)));

// What one position is computed from: for each tap inside the map, a row of channels and the tap's
// weights.
struct Sources {
  int64_t count = 0;
  const float* values[kMaxTaps];
  const float* weights[kMaxTaps];

  void Add(const float* value, const float* weight) {
    values[count] = value;
    weights[count] = weight;
    ++count;
  }
};

// result[c] = sum over sources of value[c] * weight[c]
ASSAY_VECTOR_CLONES
void Gather(const Sources& sources, int64_t channels, float* result) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    Floats sum = {};
    for (int64_t i = 0; i < sources.count; ++i) {
      Floats value, weight;
      std::memcpy(&value, sources.values[i] + c, sizeof(value));
      std::memcpy(&weight, sources.weights[i] + c, sizeof(weight));
      sum += value * weight;
    }
    std::memcpy(result + c, &sum, sizeof(sum));
  }
  for (; c < channels; ++c) {
    float sum = 0;
    for (int64_t i = 0; i < sources.count; ++i)
      sum += sources.values[i][c] * sources.weights[i][c];
    result[c] = sum;
  }
}

// sums[c] += a[c] * b[c]
ASSAY_VECTOR_CLONES
void AddProducts(int64_t channels, const float* __restrict a, const float* __restrict b,
                 float* __restrict sums) {
  for (int64_t c = 0; c < channels; ++c)
    sums[c] += a[c] * b[c];
}

// The input row (of all batches) that tap `i` of output row `row` reads, or -1 outside the map.
int64_t InputRow(const Conv2dShape& s, int64_t row, int64_t i) {
  const int64_t out = s.Output(s.height);
  const int64_t h = row % out * s.stride - s.pad() + i * s.dilation;
  return h < 0 || h >= s.height ? -1 : row / out * s.height + h;
}

int64_t InputColumn(const Conv2dShape& s, int64_t w, int64_t j) {
  const int64_t column = w * s.stride - s.pad() + j * s.dilation;
  return column < 0 || column >= s.width ? -1 : column;
}

// The output position along an axis that reads input position `at` with tap `i`, or -1.
int64_t OutputOf(const Conv2dShape& s, int64_t extent, int64_t at, int64_t i) {
  const int64_t scaled = at + s.pad() - i * s.dilation;
  if (scaled < 0 || scaled % s.stride != 0) return -1;
  return scaled / s.stride < s.Output(extent) ? scaled / s.stride : -1;
}

// Adds what one output row contributes to the weights' gradient.
void AddWeightGradients(const Conv2dShape& s, int64_t row, const float* x, const float* dy,
                        float* sums) {
  const int64_t channels = s.in_channels, out_width = s.Output(s.width);
  for (int64_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
    const int64_t from = InputRow(s, row, tap / s.kernel);
    for (int64_t column = 0; from >= 0 && column < out_width; ++column) {
      const int64_t at = InputColumn(s, column, tap % s.kernel);
      if (at >= 0)
        AddProducts(channels, x + (from * s.width + at) * channels,
                    dy + (row * out_width + column) * channels, sums + tap * channels);
    }
  }
}

}  // namespace

bool DepthwiseConvolution::CanDo(const Conv2dShape& shape) {
  return shape.is_depthwise() && shape.kernel <= kMaxKernel;
}

void DepthwiseConvolution::Forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  const Conv2dShape& s = shape_;
  CHECK(x.shape == s.x() && w.shape == s.w() && y.shape == s.y());
  const float* x_data = x.As<float>();
  const float* w_data = w.As<float>();
  float* y_data = y.As<float>();
  const int64_t channels = s.in_channels, out_width = s.Output(s.width);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < s.batch * s.Output(s.height); ++row) {
    for (int64_t column = 0; column < out_width; ++column) {
      Sources sources;
      for (int64_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
        const int64_t from = InputRow(s, row, tap / s.kernel);
        const int64_t at = InputColumn(s, column, tap % s.kernel);
        if (from >= 0 && at >= 0)
          sources.Add(x_data + (from * s.width + at) * channels, w_data + tap * channels);
      }
      Gather(sources, channels, y_data + (row * out_width + column) * channels);
    }
  }
}

void DepthwiseConvolution::BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  const Conv2dShape& s = shape_;
  CHECK(dx.shape == s.x() && w.shape == s.w() && dy.shape == s.y());
  const float* dy_data = dy.As<float>();
  const float* w_data = w.As<float>();
  float* dx_data = dx.As<float>();
  const int64_t channels = s.in_channels;
  const int64_t out_height = s.Output(s.height), out_width = s.Output(s.width);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < s.batch * s.height; ++row) {
    const int64_t batch = row / s.height;
    for (int64_t column = 0; column < s.width; ++column) {
      Sources sources;
      for (int64_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
        const int64_t h = OutputOf(s, s.height, row % s.height, tap / s.kernel);
        const int64_t at = OutputOf(s, s.width, column, tap % s.kernel);
        if (h >= 0 && at >= 0)
          sources.Add(dy_data + ((batch * out_height + h) * out_width + at) * channels,
                      w_data + tap * channels);
      }
      Gather(sources, channels, dx_data + (row * s.width + column) * channels);
    }
  }
}

void DepthwiseConvolution::BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) {
  const Conv2dShape& s = shape_;
  CHECK(x.shape == s.x() && dw.shape == s.w() && dy.shape == s.y());
  const float* x_data = x.As<float>();
  const float* dy_data = dy.As<float>();
  const int64_t rows = s.batch * s.Output(s.height);
  const int64_t part_rows = (rows + kMaxParts - 1) / kMaxParts;
  const int64_t parts = (rows + part_rows - 1) / part_rows;
  std::vector<float> partial(static_cast<size_t>(parts * dw.elements()));
#pragma omp parallel for schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    float* sums = partial.data() + part * dw.elements();
    for (int64_t row = part * part_rows; row < std::min(rows, (part + 1) * part_rows); ++row)
      AddWeightGradients(s, row, x_data, dy_data, sums);
  }
  std::vector<double> totals(static_cast<size_t>(dw.elements()));
  for (size_t i = 0; i < partial.size(); ++i)
    totals[i % totals.size()] += double{partial[i]};
  std::transform(totals.begin(), totals.end(), dw.As<float>(),
                 [](double total) { return static_cast<float>(total); });
}

}  // namespace assay
