#include "worker/engine/backends/reference/reference_convolution2d.h"

#include <vector>

#include "common/log.h"

namespace assay {
namespace {

// Where a tap of the kernel connects an output and an input position, for one group of channels:
// offsets of the group's first channel.
struct Connection {
  int64_t x, w, y;
};

// Calls visit(connection) for every connection inside the map.
template <typename Visit>
void ForEachConnection(const Conv2dShape& s, Visit visit) {
  const int64_t out_height = s.Output(s.height), out_width = s.Output(s.width);
  const int64_t in_group = s.in_channels / s.groups, out_group = s.out_channels / s.groups;
  for (int64_t row = 0; row < s.batch * out_height * out_width; ++row) {
    const int64_t b = row / (out_height * out_width);
    const int64_t top = row / out_width % out_height * s.stride - s.pad();
    const int64_t left = row % out_width * s.stride - s.pad();
    for (int64_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
      const int64_t h = top + tap / s.kernel * s.dilation, w = left + tap % s.kernel * s.dilation;
      if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
      for (int64_t group = 0; group < s.groups; ++group)
        visit(Connection{((b * s.height + h) * s.width + w) * s.in_channels + group * in_group,
                         tap * in_group * s.out_channels + group * out_group,
                         row * s.out_channels + group * out_group});
    }
  }
}

template <typename T>
void Round(const std::vector<double>& sums, const Tensor& result) {
  for (size_t i = 0; i < sums.size(); ++i)
    result.As<T>()[i] = static_cast<T>(sums[i]);
}

}  // namespace

template <typename T>
void ReferenceConvolution2d<T>::Forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  CHECK(x.shape == shape_.x() && w.shape == shape_.w() && y.shape == shape_.y());
  const int64_t in = shape_.in_channels / shape_.groups;
  const int64_t out = shape_.out_channels / shape_.groups;
  const T* x_data = x.As<T>();
  const T* w_data = w.As<T>();
  std::vector<double> sums(static_cast<size_t>(y.elements()));
  ForEachConnection(shape_, [&](const Connection& at) {
    for (int64_t i = 0; i < in; ++i)
      for (int64_t o = 0; o < out; ++o)
        sums[static_cast<size_t>(at.y + o)] +=
            double{x_data[at.x + i]} * w_data[at.w + i * shape_.out_channels + o];
  });
  Round<T>(sums, y);
}

template <typename T>
void ReferenceConvolution2d<T>::BackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  CHECK(dx.shape == shape_.x() && w.shape == shape_.w() && dy.shape == shape_.y());
  const int64_t in = shape_.in_channels / shape_.groups;
  const int64_t out = shape_.out_channels / shape_.groups;
  const T* dy_data = dy.As<T>();
  const T* w_data = w.As<T>();
  std::vector<double> sums(static_cast<size_t>(dx.elements()));
  ForEachConnection(shape_, [&](const Connection& at) {
    for (int64_t i = 0; i < in; ++i) {
      double sum = 0;
      for (int64_t o = 0; o < out; ++o)
        sum += double{dy_data[at.y + o]} * w_data[at.w + i * shape_.out_channels + o];
      sums[static_cast<size_t>(at.x + i)] += sum;
    }
  });
  Round<T>(sums, dx);
}

template <typename T>
void ReferenceConvolution2d<T>::BackwardWeights(const Tensor& x, const Tensor& dy,
                                                const Tensor& dw) {
  CHECK(x.shape == shape_.x() && dw.shape == shape_.w() && dy.shape == shape_.y());
  const int64_t in = shape_.in_channels / shape_.groups;
  const int64_t out = shape_.out_channels / shape_.groups;
  const T* x_data = x.As<T>();
  const T* dy_data = dy.As<T>();
  std::vector<double> sums(static_cast<size_t>(dw.elements()));
  ForEachConnection(shape_, [&](const Connection& at) {
    for (int64_t i = 0; i < in; ++i)
      for (int64_t o = 0; o < out; ++o)
        sums[static_cast<size_t>(at.w + i * shape_.out_channels + o)] +=
            double{x_data[at.x + i]} * dy_data[at.y + o];
  });
  Round<T>(sums, dw);
}

template class ReferenceConvolution2d<float>;
template class ReferenceConvolution2d<double>;

}  // namespace assay
