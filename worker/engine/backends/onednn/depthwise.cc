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
// Columns of a row that a vector of channels takes before the next vector does: few enough that the
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

// Where the vector of channels after the one at `c` begins: the last one overlaps the one before it
// rather than reach beyond the channels, of which there are at least kLanes.
int64_t NextVector(int64_t c, int64_t channels) {
  const int64_t next = c + kLanes, last = channels - kLanes;
  return next < channels && next > last ? last : next;
}

// result[c] = sum over sources of value[c] * weight[c]
ASSAY_VECTOR_CLONES
void Gather(const Sources& sources, int64_t channels, float* result) {
  if (channels >= kLanes) {
    for (int64_t c = 0; c < channels; c = NextVector(c, channels)) {
      Floats sum = {};
      for (int64_t i = 0; i < sources.count; ++i) {
        Floats value, weight;
        std::memcpy(&value, sources.values[i] + c, sizeof(value));
        std::memcpy(&weight, sources.weights[i] + c, sizeof(weight));
        sum += value * weight;
      }
      std::memcpy(result + c, &sum, sizeof(sum));
    }
    return;
  }
  for (int64_t c = 0; c < channels; ++c) {
    float sum = 0;
    for (int64_t i = 0; i < sources.count; ++i)
      sum += sources.values[i][c] * sources.weights[i][c];
    result[c] = sum;
  }
}

// Some neighbouring results of a row, each from nine taps that are all inside the map.
struct NineSources {
  const float* values[3];   // what each row of taps reads first
  const float* weights[3];  // of each row of taps: 3 times the channels
  float* results;
  int64_t columns;
  int64_t column_step;  // in values, from a result to the next
  int64_t tap_step;     // in values, from a tap to the next
};

// As Gather; at least kLanes channels. The weights stay in registers.
ASSAY_VECTOR_CLONES
void GatherNine(const NineSources& s, int64_t channels) {
  for (int64_t c = 0; c < channels; c = NextVector(c, channels)) {
    Floats weights[9];
#pragma GCC unroll 9
    for (int64_t tap = 0; tap < 9; ++tap)
      std::memcpy(&weights[tap], s.weights[tap / 3] + tap % 3 * channels + c, sizeof(Floats));
    for (int64_t column = 0; column < s.columns; ++column) {
      Floats sum = {};
#pragma GCC unroll 9
      for (int64_t tap = 0; tap < 9; ++tap) {
        Floats value;
        std::memcpy(&value, s.values[tap / 3] + column * s.column_step + tap % 3 * s.tap_step + c,
                    sizeof(value));
        sum += value * weights[tap];
      }
      std::memcpy(s.results + column * channels + c, &sum, sizeof(sum));
    }
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

// One pass over a map: each result from what its taps see, row by row.
class DepthwisePass {
 public:
  // `is_backward`: the gradient of x from that of y.
  DepthwisePass(const Conv2dShape& shape, bool is_backward, const float* values,
                const float* weights, float* results)
      : s_(shape),
        is_backward_(is_backward),
        channels_(shape.in_channels),
        from_width_(is_backward ? shape.Output(shape.width) : shape.width),
        width_(is_backward ? shape.width : shape.Output(shape.width)),
        values_(values),
        weights_(weights),
        results_(results) {
    const bool has_inner =
        shape.kernel == 3 && channels_ >= kLanes && (!is_backward || shape.stride == 1);
    if (!has_inner) return;
    const InnerColumns inner(shape);
    inner_last_ = std::min(inner.last, width_);
    inner_first_ = std::min(inner.first, inner_last_);
    outside_.resize(static_cast<size_t>(3 * channels_));
  }

  int64_t rows() const { return s_.batch * (is_backward_ ? s_.height : s_.Output(s_.height)); }

  void Run(int64_t row) const {
    RunColumns(row, 0, inner_first_);
    for (int64_t column = inner_first_; column < inner_last_; column += kColumns)
      RunInner(row, column, std::min(kColumns, inner_last_ - column));
    RunColumns(row, inner_last_, width_);
  }

 private:
  // The row (of all batches) that tap `i` of a row of results reads, or -1 outside the map.
  int64_t FromRow(int64_t row, int64_t i) const {
    if (!is_backward_) return InputRow(s_, row, i);
    const int64_t h = OutputOf(s_, s_.height, row % s_.height, i);
    return h < 0 ? -1 : row / s_.height * s_.Output(s_.height) + h;
  }

  int64_t FromColumn(int64_t column, int64_t j) const {
    return is_backward_ ? OutputOf(s_, s_.width, column, j) : InputColumn(s_, column, j);
  }

  const float* ValuesAt(int64_t row, int64_t column) const {
    return values_ + (row * from_width_ + column) * channels_;
  }

  float* ResultsAt(int64_t row, int64_t column) const {
    return results_ + (row * width_ + column) * channels_;
  }

  // One result after the other, from the taps inside the map.
  void RunColumns(int64_t row, int64_t first, int64_t last) const {
    for (int64_t column = first; column < last; ++column) {
      Sources sources;
      for (int64_t tap = 0; tap < s_.kernel * s_.kernel; ++tap) {
        const int64_t from = FromRow(row, tap / s_.kernel);
        const int64_t at = FromColumn(column, tap % s_.kernel);
        if (from >= 0 && at >= 0) sources.Add(ValuesAt(from, at), weights_ + tap * channels_);
      }
      Gather(sources, channels_, ResultsAt(row, column));
    }
  }

  // All nine taps at once. A row of taps outside of the map takes the middle one's numbers, times
  // nothing.
  void RunInner(int64_t row, int64_t column, int64_t count) const {
    NineSources sources = {.values = {},
                           .weights = {},
                           .results = ResultsAt(row, column),
                           .columns = count,
                           .column_step = (is_backward_ ? 1 : s_.stride) * channels_,
                           .tap_step = (is_backward_ ? -1 : 1) * s_.dilation * channels_};
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t from = FromRow(row, i);
      sources.values[i] = ValuesAt(from >= 0 ? from : FromRow(row, 1), FromColumn(column, 0));
      sources.weights[i] = from >= 0 ? weights_ + 3 * i * channels_ : outside_.data();
    }
    GatherNine(sources, channels_);
  }

  const Conv2dShape& s_;
  const bool is_backward_;
  const int64_t channels_;
  const int64_t from_width_, width_;  // of what is read, and of the results
  const float* const values_;
  const float* const weights_;
  float* const results_;
  int64_t inner_first_ = 0, inner_last_ = 0;  // columns whose taps are all inside the map
  std::vector<float> outside_;                // zeros
};

void RunPass(const DepthwisePass& pass) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < pass.rows(); ++row)
    pass.Run(row);
}

}  // namespace

bool DepthwiseConvolution::CanDo(const Conv2dShape& shape) {
  return shape.is_depthwise() && shape.kernel <= kMaxKernel;
}

void DepthwiseConvolution::Forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  CHECK(x.shape == shape_.x() && w.shape == shape_.w() && y.shape == shape_.y());
  RunPass({shape_, /*is_backward=*/false, x.As<float>(), w.As<float>(), y.As<float>()});
}

void DepthwiseConvolution::BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  CHECK(dx.shape == shape_.x() && w.shape == shape_.w() && dy.shape == shape_.y());
  RunPass({shape_, /*is_backward=*/true, dy.As<float>(), w.As<float>(), dx.As<float>()});
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
