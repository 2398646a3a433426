#include "worker/engine/backends/onednn/strided_convolution.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/log.h"
#include "worker/engine/backends/onednn/gemm.h"
#include "worker/engine/backends/onednn/map_kernels.h"
#include "worker/engine/backends/onednn/vector_clones.h"

namespace assay {
namespace {

constexpr int64_t kMinChannels = 64;  // that fill a product
// Pixels of dy in one product: enough to be fast, few enough that the result stays in a cache.
constexpr int64_t kProductRows = 1024;

// Whether the gradient of x is taken as products: at a position along an axis meet at most two
// parts, of the row of products at it and the one behind it.
bool HasDataProducts(const Conv2dShape& shape) {
  return shape.dilation == 1 && shape.pad() < shape.stride && shape.kernel <= 2 * shape.stride;
}

bool HasWeightProducts(const Conv2dShape& shape) {
  return shape.in_channels >= kMinChannels;
}

// sum[c] = sum over the sources of source[c]
ASSAY_VECTOR_CLONES
void AddSources(int64_t count, const float* const* sources, int64_t channels,
                float* __restrict sum) {
  switch (count) {
    case 1:
      for (int64_t c = 0; c < channels; ++c)
        sum[c] = sources[0][c];
      return;
    case 2:
      for (int64_t c = 0; c < channels; ++c)
        sum[c] = sources[0][c] + sources[1][c];
      return;
    case 4:
      for (int64_t c = 0; c < channels; ++c)
        sum[c] = (sources[0][c] + sources[1][c]) + (sources[2][c] + sources[3][c]);
      return;
    default:
      std::fill_n(sum, channels, 0.0F);  // no tap reaches here
  }
}

}  // namespace

bool StridedConvolution::CanDo(const Conv2dShape& shape) {
  return shape.stride > 1 && shape.kernel > 1 && shape.groups == 1 &&
         shape.out_channels >= kMinChannels && (HasWeightProducts(shape) || HasDataProducts(shape));
}

StridedConvolution::StridedConvolution(const Conv2dShape& shape, std::unique_ptr<Convolution> dense,
                                       StripMemory* memory)
    : shape_(shape),
      dense_(std::move(dense)),
      winograd_(WinogradTransposed::CanDo(shape)
                    ? std::make_unique<WinogradTransposed>(shape, memory)
                    : nullptr) {
  CHECK(CanDo(shape));
}

void StridedConvolution::WeightsChanged() {
  dense_->WeightsChanged();
  if (winograd_ != nullptr) winograd_->WeightsChanged();
}

void StridedConvolution::Forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  dense_->Forward(x, w, y);
}

StridedConvolution::Meeting StridedConvolution::MeetingAt(int64_t position, int64_t outputs,
                                                          int64_t output_step,
                                                          int64_t tap_step) const {
  Meeting meeting;
  for (int64_t tap = 0; tap < shape_.kernel; ++tap) {
    const int64_t scaled = position + shape_.pad() - tap;
    if (scaled < 0 || scaled % shape_.stride != 0 || scaled / shape_.stride >= outputs) continue;
    meeting.offset[meeting.count++] = scaled / shape_.stride * output_step + tap * tap_step;
  }
  return meeting;
}

// Rows of one sample's dx from products that begin with dy's row first / stride.
void StridedConvolution::AddRows(int64_t first, int64_t last, float* dx) const {
  const Conv2dShape& s = shape_;
  const int64_t out_width = s.Output(s.width), pixel = s.kernel * s.kernel * s.in_channels;
  const int64_t start = first / s.stride * out_width * pixel;
#pragma omp parallel for schedule(static)
  for (int64_t row = first; row < last; ++row) {
    const Meeting rows =
        MeetingAt(row, s.Output(s.height), out_width * pixel, s.kernel * s.in_channels);
    float* to = dx + row * s.width * s.in_channels;
    for (int64_t column = 0; column < s.width; ++column, to += s.in_channels) {
      const Meeting& columns = columns_[static_cast<size_t>(column)];
      const float* sources[4];
      int64_t count = 0;
      for (int64_t i = 0; i < rows.count; ++i)
        for (int64_t j = 0; j < columns.count; ++j)
          sources[count++] = products_.data() + (rows.offset[i] + columns.offset[j] - start);
      AddSources(count, sources, s.in_channels, to);
    }
  }
}

// Each pixel of dy times all weights, then the sum of what meets at a pixel of dx.
void StridedConvolution::BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  const Conv2dShape& s = shape_;
  if (!HasDataProducts(s)) return dense_->BackwardData(dy, w, dx);
  CHECK(dx.shape == s.x() && w.shape == s.w() && dy.shape == s.y());
  const int64_t out_height = s.Output(s.height), out_width = s.Output(s.width);
  const int64_t parts = s.kernel * s.kernel * s.in_channels, row_size = out_width * parts;
  const int64_t rows = std::max(int64_t{1}, kProductRows / out_width);
  products_.resize(static_cast<size_t>((rows + 1) * row_size));
  columns_.clear();
  for (int64_t column = 0; column < s.width; ++column)
    columns_.push_back(MeetingAt(column, out_width, parts, s.in_channels));
  for (int64_t sample = 0; sample < s.batch; ++sample) {
    const float* from = dy.As<float>() + sample * out_height * out_width * s.out_channels;
    float* to = dx.As<float>() + sample * s.height * s.width * s.in_channels;
    for (int64_t first = 0; first < out_height; first += rows) {
      const int64_t last = std::min(out_height, first + rows);
      // The first row is there from the products before, and one more row meets the last.
      const int64_t begin = first == 0 ? 0 : first + 1, end = std::min(out_height, last + 1);
      if (begin < end)
        Gemm{false, true, (end - begin) * out_width, parts, s.out_channels}.Run(
            from + begin * out_width * s.out_channels, w.As<float>(),
            products_.data() + (begin - first) * row_size);
      AddRows(first * s.stride, std::min(s.height, last * s.stride), to);
      if (last < out_height)
        CopyKernel(products_.data() + (last - first) * row_size,
                   static_cast<size_t>(row_size) * sizeof(float), products_.data());
    }
  }
}

bool StridedConvolution::BackwardDataNormalised(const Tensor& dy, const Tensor& w,
                                                const Normalisation& n, const Tensor& dx) {
  if (winograd_ == nullptr) return false;
  winograd_->Run(dy, w, n, dx);
  return true;
}

void StridedConvolution::Gather(const float* x, int64_t tap) {
  const Conv2dShape& s = shape_;
  const int64_t out_height = s.Output(s.height), out_width = s.Output(s.width);
  const int64_t down = tap / s.kernel * s.dilation - s.pad();
  const int64_t right = tap % s.kernel * s.dilation - s.pad();
  const size_t pixel_bytes = static_cast<size_t>(s.in_channels) * sizeof(float);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < s.batch * out_height; ++row) {
    const int64_t h = row % out_height * s.stride + down;
    const bool is_inside = h >= 0 && h < s.height;
    const int64_t first_pixel = (row / out_height * s.height + h) * s.width;
    float* to = seen_.data() + row * out_width * s.in_channels;
    for (int64_t column = 0; column < out_width; ++column, to += s.in_channels) {
      const int64_t w = column * s.stride + right;
      if (is_inside && w >= 0 && w < s.width)
        std::memcpy(to, x + (first_pixel + w) * s.in_channels, pixel_bytes);
      else
        std::memset(to, 0, pixel_bytes);
    }
  }
}

void StridedConvolution::BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) {
  if (!HasWeightProducts(shape_)) return dense_->BackwardWeights(x, dy, dw);
  CHECK(x.shape == shape_.x() && dw.shape == shape_.w() && dy.shape == shape_.y());
  const int64_t rows = dy.elements() / shape_.out_channels;
  seen_.resize(static_cast<size_t>(rows * shape_.in_channels));
  const Gemm product = {true, false, shape_.in_channels, shape_.out_channels, rows};
  for (int64_t tap = 0; tap < shape_.kernel * shape_.kernel; ++tap) {
    Gather(x.As<float>(), tap);
    product.Run(seen_.data(), dy.As<float>(),
                dw.As<float>() + tap * shape_.in_channels * shape_.out_channels);
  }
}

}  // namespace assay
