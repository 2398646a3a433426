#include "worker/engine/backends/onednn/depthwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/log.h"
#include "worker/engine/backends/onednn/map_kernels.h"
#include "worker/engine/backends/onednn/vector_clones.h"

namespace assay {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kMaxTaps = DepthwiseConvolution::kMaxKernel * DepthwiseConvolution::kMaxKernel;
// Columns of a row between two visits to the sums of a vector of channels: few enough that the
// lines and pages of all channels stay at hand.
constexpr int64_t kColumns = 8;
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

// Some neighbouring outputs of a row whose nine taps are all inside the map.
struct NineTaps {
  const float* x[3];  // what each row of taps reads first
  float* sums[3];     // of each row of taps: 3 times the channels
  const float* dy;
  int64_t columns;
  int64_t column_step;  // in x, from an output to the next
  int64_t tap_step;     // in x, from a tap to the next
};

// sums[tap][c] += sum over the outputs of x[c] * dy[c]
ASSAY_VECTOR_CLONES
void AddNineTaps(const NineTaps& t, int64_t channels) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    Floats sum[9];
#pragma GCC unroll 9
    for (int64_t tap = 0; tap < 9; ++tap)
      std::memcpy(&sum[tap], t.sums[tap / 3] + tap % 3 * channels + c, sizeof(Floats));
    for (int64_t column = 0; column < t.columns; ++column) {
      Floats gradient;
      std::memcpy(&gradient, t.dy + column * channels + c, sizeof(gradient));
#pragma GCC unroll 9
      for (int64_t tap = 0; tap < 9; ++tap) {
        Floats value;
        std::memcpy(&value, t.x[tap / 3] + column * t.column_step + tap % 3 * t.tap_step + c,
                    sizeof(value));
        sum[tap] += value * gradient;
      }
    }
#pragma GCC unroll 9
    for (int64_t tap = 0; tap < 9; ++tap)
      std::memcpy(t.sums[tap / 3] + tap % 3 * channels + c, &sum[tap], sizeof(Floats));
  }
  for (; c < channels; ++c)
    for (int64_t tap = 0; tap < 9; ++tap)
      for (int64_t column = 0; column < t.columns; ++column)
        t.sums[tap / 3][tap % 3 * channels + c] +=
            t.x[tap / 3][column * t.column_step + tap % 3 * t.tap_step + c] *
            t.dy[column * channels + c];
}

// Output columns [first, last) whose taps are all inside the map; kernel 3.
struct InnerColumns {
  explicit InnerColumns(const Conv2dShape& s)
      : first((s.pad() + s.stride - 1) / s.stride),
        last(std::max(first, (s.width - 1 - 2 * s.dilation + s.pad() + s.stride) / s.stride)) {}
  int64_t first, last;
};

// Sums of the gradients of one part's rows.
class WeightGradients {
 public:
  WeightGradients(const Conv2dShape& shape, const float* x, const float* dy, float* sums)
      : s_(shape), x_(x), dy_(dy), sums_(sums) {
    if (shape.kernel == 3) outside_.resize(static_cast<size_t>(3 * shape.in_channels));
  }

  // Adds what one output row contributes.
  void AddRow(int64_t row) {
    const int64_t out_width = s_.Output(s_.width);
    if (s_.kernel != 3) return AddColumns(row, 0, out_width);
    const InnerColumns inner(s_);
    const int64_t last = std::min(inner.last, out_width), first = std::min(inner.first, last);
    AddColumns(row, 0, first);
    for (int64_t column = first; column < last; column += kColumns)
      AddInnerColumns(row, column, std::min(kColumns, last - column));
    AddColumns(row, last, out_width);
  }

 private:
  // One tap after the other, those inside the map.
  void AddColumns(int64_t row, int64_t first, int64_t last) {
    const int64_t channels = s_.in_channels, out_width = s_.Output(s_.width);
    for (int64_t tap = 0; tap < s_.kernel * s_.kernel; ++tap) {
      const int64_t from = InputRow(s_, row, tap / s_.kernel);
      for (int64_t column = first; from >= 0 && column < last; ++column) {
        const int64_t at = InputColumn(s_, column, tap % s_.kernel);
        if (at >= 0)
          AddProducts(channels, x_ + (from * s_.width + at) * channels,
                      dy_ + (row * out_width + column) * channels, sums_ + tap * channels);
      }
    }
  }

  // All nine taps at once. A row of taps outside of the map takes the middle one's numbers, and its
  // sums go nowhere.
  void AddInnerColumns(int64_t row, int64_t column, int64_t count) {
    const int64_t channels = s_.in_channels;
    NineTaps taps = {.x = {},
                     .sums = {},
                     .dy = dy_ + (row * s_.Output(s_.width) + column) * channels,
                     .columns = count,
                     .column_step = s_.stride * channels,
                     .tap_step = s_.dilation * channels};
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t from = InputRow(s_, row, i);
      const int64_t read = from >= 0 ? from : InputRow(s_, row, 1);
      taps.x[i] = x_ + (read * s_.width + InputColumn(s_, column, 0)) * channels;
      taps.sums[i] = from >= 0 ? sums_ + 3 * i * channels : outside_.data();
    }
    AddNineTaps(taps, channels);
  }

  const Conv2dShape& s_;
  const float* const x_;
  const float* const dy_;
  float* const sums_;
  std::vector<float> outside_;
};

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
    WeightGradients gradients(s, x_data, dy_data, partial.data() + part * dw.elements());
    for (int64_t row = part * part_rows; row < std::min(rows, (part + 1) * part_rows); ++row)
      gradients.AddRow(row);
  }
  const std::vector<double> totals = AddParts(partial, dw.elements());
  std::transform(totals.begin(), totals.end(), dw.As<float>(),
                 [](double total) { return static_cast<float>(total); });
}

}  // namespace assay
