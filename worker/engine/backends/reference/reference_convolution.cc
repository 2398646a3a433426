#include "worker/engine/backends/reference/reference_convolution.h"

#include <array>
#include <vector>

#include "common/log.h"

namespace assay {
namespace {

using Position = std::array<int64_t, 4>;  // batch, d, h, w

// Calls visit(position) for every position of (batch, extent...).
template <typename Visit>
void ForEachPosition(int64_t batch, const std::array<int64_t, 3>& extent, Visit visit) {
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t d = 0; d < extent[0]; ++d)
      for (int64_t h = 0; h < extent[1]; ++h)
        for (int64_t w = 0; w < extent[2]; ++w)
          visit(Position{b, d, h, w});
}

int64_t Index(const Position& p, const std::array<int64_t, 3>& extent) {
  return ((p[0] * extent[0] + p[1]) * extent[1] + p[2]) * extent[2] + p[3];
}

// Calls visit(tap, output row, input row) for every pair of output and input position that a tap of
// the kernel connects; rows count positions, taps count kernel positions.
template <typename Visit>
void ForEachTap(const ConvShape& shape, Visit visit) {
  const int64_t k = shape.kernel;
  const std::array<int64_t, 3> out = {shape.output(0), shape.output(1), shape.output(2)};
  ForEachPosition(shape.batch, out, [&](const Position& p) {
    for (int64_t tap = 0; tap < k * k * k; ++tap) {
      const Position q = {p[0], p[1] + tap / (k * k) - shape.pad_before[0],
                          p[2] + tap / k % k - shape.pad_before[1],
                          p[3] + tap % k - shape.pad_before[2]};
      bool is_inside = true;
      for (size_t axis = 0; axis < 3; ++axis)
        is_inside = is_inside && q[axis + 1] >= 0 && q[axis + 1] < shape.input[axis];
      if (is_inside) visit(tap, Index(p, out), Index(q, shape.input));
    }
  });
}

template <typename T>
void Round(const std::vector<double>& sums, T* result) {
  for (size_t i = 0; i < sums.size(); ++i)
    result[i] = static_cast<T>(sums[i]);
}

}  // namespace

template <typename T>
void ReferenceConvolution<T>::Forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  CHECK(x.shape == shape_.x() && w.shape == shape_.w() && y.shape == shape_.y());
  const int64_t in = shape_.in_channels, out = shape_.out_channels;
  const T* x_data = x.As<T>();
  const T* w_data = w.As<T>();
  std::vector<double> sums(static_cast<size_t>(y.elements()));
  ForEachTap(shape_, [&](int64_t tap, int64_t y_row, int64_t x_row) {
    double* sum = sums.data() + y_row * out;
    for (int64_t i = 0; i < in; ++i) {
      const double value = x_data[x_row * in + i];
      const T* weights = w_data + (tap * in + i) * out;
      for (int64_t o = 0; o < out; ++o)
        sum[o] += value * weights[o];
    }
  });
  Round(sums, y.As<T>());
}

template <typename T>
void ReferenceConvolution<T>::BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  CHECK(dx.shape == shape_.x() && w.shape == shape_.w() && dy.shape == shape_.y());
  const int64_t in = shape_.in_channels, out = shape_.out_channels;
  const T* dy_data = dy.As<T>();
  const T* w_data = w.As<T>();
  std::vector<double> sums(static_cast<size_t>(dx.elements()));
  ForEachTap(shape_, [&](int64_t tap, int64_t y_row, int64_t x_row) {
    for (int64_t i = 0; i < in; ++i) {
      const T* weights = w_data + (tap * in + i) * out;
      double sum = 0;
      for (int64_t o = 0; o < out; ++o)
        sum += double{dy_data[y_row * out + o]} * weights[o];
      sums[static_cast<size_t>(x_row * in + i)] += sum;
    }
  });
  Round(sums, dx.As<T>());
}

template <typename T>
void ReferenceConvolution<T>::BackwardWeights(const Tensor& x, const Tensor& dy, const Tensor& dw) {
  CHECK(x.shape == shape_.x() && dw.shape == shape_.w() && dy.shape == shape_.y());
  const int64_t in = shape_.in_channels, out = shape_.out_channels;
  const T* x_data = x.As<T>();
  const T* dy_data = dy.As<T>();
  std::vector<double> sums(static_cast<size_t>(dw.elements()));
  ForEachTap(shape_, [&](int64_t tap, int64_t y_row, int64_t x_row) {
    for (int64_t i = 0; i < in; ++i) {
      const double value = x_data[x_row * in + i];
      double* sum = sums.data() + (tap * in + i) * out;
      for (int64_t o = 0; o < out; ++o)
        sum[o] += value * dy_data[y_row * out + o];
    }
  });
  Round(sums, dw.As<T>());
}

template class ReferenceConvolution<float>;
template class ReferenceConvolution<double>;

}  // namespace assay
