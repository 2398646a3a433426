#include "worker/engine/backends/onednn/strided_convolution.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/log.h"
#include "worker/engine/backends/onednn/gemm.h"

namespace assay {
namespace {

constexpr int64_t kMinChannels = 64;

}  // namespace

bool StridedConvolution::CanDo(const Conv2dShape& shape) {
  return shape.stride > 1 && shape.kernel > 1 && shape.groups == 1 &&
         std::min(shape.in_channels, shape.out_channels) >= kMinChannels;
}

StridedConvolution::StridedConvolution(const Conv2dShape& shape, std::unique_ptr<Convolution> dense)
    : shape_(shape), dense_(std::move(dense)) {
  CHECK(CanDo(shape));
}

void StridedConvolution::Forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  dense_->Forward(x, w, y);
}

void StridedConvolution::BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  dense_->BackwardData(dy, w, dx);
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
