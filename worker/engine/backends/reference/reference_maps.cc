#include "worker/engine/backends/reference/reference_maps.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/log.h"
#include "worker/engine/backends/reference/reference_convolution2d.h"

namespace assay {
namespace {

// One number per channel, in double whatever the tensors hold.
using Sums = std::vector<double>;

int64_t Channels(const Tensor& x) {
  return x.shape[x.shape.rank() - 1];
}

size_t ChannelOf(int64_t i, const Tensor& x) {
  return static_cast<size_t>(i % Channels(x));
}

template <typename T>
void Store(const Sums& sums, double factor, const Tensor& result) {
  CHECK(result.elements() == static_cast<int64_t>(sums.size()));
  for (size_t c = 0; c < sums.size(); ++c)
    result.As<T>()[c] = static_cast<T>(factor * sums[c]);
}

template <typename T>
double InverseDeviation(const Normalisation& n, size_t channel) {
  return 1 / std::sqrt(double{n.variance.As<T>()[channel]} + n.epsilon);
}

void CheckChannels(const Normalisation& n, const Tensor& x) {
  const int64_t channels = Channels(x);
  CHECK(n.mean.elements() == channels && n.variance.elements() == channels &&
        n.scale.elements() == channels && n.shift.elements() == channels)
      << "x=" << x.shape.ToString();
}

}  // namespace

template <typename T>
absl::StatusOr<std::unique_ptr<Convolution>> ReferenceMaps<T>::MakeConvolution2d(
    const Conv2dShape& shape) {
  return std::make_unique<ReferenceConvolution2d<T>>(shape);
}

template <typename T>
void ReferenceMaps<T>::ChannelMoments(const Tensor& x, const Tensor& mean, const Tensor& variance) {
  const size_t channels = static_cast<size_t>(Channels(x));
  const double count = static_cast<double>(x.elements()) / static_cast<double>(channels);
  Sums sums(channels), squares(channels);
  for (int64_t i = 0; i < x.elements(); ++i)
    sums[ChannelOf(i, x)] += x.As<T>()[i];
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double offset = double{x.As<T>()[i]} - sums[ChannelOf(i, x)] / count;
    squares[ChannelOf(i, x)] += offset * offset;
  }
  Store<T>(sums, 1 / count, mean);
  Store<T>(squares, 1 / count, variance);
}

template <typename T>
void ReferenceMaps<T>::Normalise(const Normalisation& n, const Tensor& x, const Tensor& y) {
  CHECK(x.shape == y.shape);
  CheckChannels(n, x);
  for (int64_t i = 0; i < x.elements(); ++i) {
    const size_t c = ChannelOf(i, x);
    const double centred = double{x.As<T>()[i]} - n.mean.As<T>()[c];
    const double value =
        centred * InverseDeviation<T>(n, c) * n.scale.As<T>()[c] + n.shift.As<T>()[c];
    y.As<T>()[i] = static_cast<T>(n.relu && value < 0 ? 0 : value);
  }
}

template <typename T>
void ReferenceMaps<T>::NormaliseSums(const Normalisation& n, const Tensor& x, const Tensor& y,
                                     const Tensor& dy, const Tensor& scale_gradient,
                                     const Tensor& shift_gradient) {
  CHECK(x.shape == y.shape && x.shape == dy.shape);
  CheckChannels(n, x);
  Sums scale(static_cast<size_t>(Channels(x))), shift(scale.size());
  for (int64_t i = 0; i < x.elements(); ++i) {
    const size_t c = ChannelOf(i, x);
    T& gradient = dy.As<T>()[i];
    if (n.relu && !(y.As<T>()[i] > 0)) gradient = 0;
    const double centred = double{x.As<T>()[i]} - n.mean.As<T>()[c];
    scale[c] += double{gradient} * centred * InverseDeviation<T>(n, c);
    shift[c] += double{gradient};
  }
  Store<T>(scale, 1, scale_gradient);
  Store<T>(shift, 1, shift_gradient);
}

template <typename T>
void ReferenceMaps<T>::NormaliseBackward(const Normalisation& n, const Tensor& x,
                                         const ChannelSums& sums, const Tensor& dy) {
  CHECK(x.shape == dy.shape);
  CheckChannels(n, x);
  const T* const scale = sums.scale.As<T>();
  const T* const shift = sums.shift.As<T>();
  for (int64_t i = 0; i < x.elements(); ++i) {
    const size_t c = ChannelOf(i, x);
    const double inverse = InverseDeviation<T>(n, c);
    const double normal = (double{x.As<T>()[i]} - n.mean.As<T>()[c]) * inverse;
    T& gradient = dy.As<T>()[i];
    const double means = sums.share * (double{shift[c]} + double{scale[c]} * normal);
    gradient = static_cast<T>(n.scale.As<T>()[c] * inverse * (double{gradient} - means));
  }
}

template <typename T>
void ReferenceMaps<T>::Combine(double a, const Tensor& x, double b, const Tensor& y) {
  CHECK(x.elements() == y.elements());
  for (int64_t i = 0; i < x.elements(); ++i) {
    T& value = y.As<T>()[i];
    const double kept = b == 0 ? 0 : b * double{value};
    value = static_cast<T>(a * double{x.As<T>()[i]} + kept);
  }
}

template <typename T>
void ReferenceMaps<T>::Relu(const Tensor& y) {
  for (T& value : y.Span<T>())
    value = value > 0 ? value : T{0};
}

template <typename T>
void ReferenceMaps<T>::ReluBackward(const Tensor& y, const Tensor& dy) {
  CHECK(y.shape == dy.shape);
  for (int64_t i = 0; i < y.elements(); ++i)
    if (!(y.As<T>()[i] > 0)) dy.As<T>()[i] = 0;
}

template <typename T>
void ReferenceMaps<T>::PutChannels(const Tensor& part, int64_t first, const Tensor& all) {
  const int64_t size = Channels(part), stride = Channels(all);
  CHECK(part.elements() / size == all.elements() / stride && first >= 0 && first + size <= stride);
  for (int64_t row = 0; row < part.elements() / size; ++row)
    std::copy_n(part.As<T>() + row * size, size, all.As<T>() + row * stride + first);
}

template <typename T>
void ReferenceMaps<T>::TakeChannels(const Tensor& all, int64_t first, const Tensor& part) {
  const int64_t size = Channels(part), stride = Channels(all);
  CHECK(part.elements() / size == all.elements() / stride && first >= 0 && first + size <= stride);
  for (int64_t row = 0; row < part.elements() / size; ++row)
    std::copy_n(all.As<T>() + row * stride + first, size, part.As<T>() + row * size);
}

template <typename T>
void ReferenceMaps<T>::SpatialSum(const Tensor& x, double factor, const Tensor& sum) {
  const int64_t area = x.shape[1] * x.shape[2], channels = x.shape[3];
  CHECK(sum.shape == Shape({x.shape[0], 1, 1, channels}));
  Sums sums(static_cast<size_t>(sum.elements()));
  for (int64_t i = 0; i < x.elements(); ++i)
    sums[static_cast<size_t>(i / (area * channels) * channels + i % channels)] += x.As<T>()[i];
  Store<T>(sums, factor, sum);
}

template <typename T>
void ReferenceMaps<T>::SpatialSpread(const Tensor& x, double factor, const Tensor& y) {
  const int64_t area = y.shape[1] * y.shape[2], channels = y.shape[3];
  CHECK(x.shape == Shape({y.shape[0], 1, 1, channels}));
  for (int64_t i = 0; i < y.elements(); ++i) {
    const T value = x.As<T>()[i / (area * channels) * channels + i % channels];
    y.As<T>()[i] = static_cast<T>(factor * double{value});
  }
}

template <typename T>
void ReferenceMaps<T>::SoftmaxCrossEntropy(const Tensor& logits, const Tensor& labels,
                                           const Tensor& weights, const Tensor& gradient,
                                           const Tensor& loss) {
  const int64_t classes = Channels(logits), pixels = labels.elements();
  CHECK(logits.shape == gradient.shape && logits.elements() == pixels * classes &&
        weights.elements() == classes);
  double total = 0;
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    const T* score = logits.As<T>() + pixel * classes;
    const int64_t truth = labels.As<uint8_t>()[pixel];
    CHECK(truth < classes) << "label=" << truth;
    const double largest = *std::max_element(score, score + classes);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c)
      sum += std::exp(double{score[c]} - largest);
    const double weight = weights.As<T>()[truth];
    total += weight * (std::log(sum) + largest - double{score[truth]});
    for (int64_t c = 0; c < classes; ++c) {
      const double probability = std::exp(double{score[c]} - largest) / sum;
      gradient.As<T>()[pixel * classes + c] = static_cast<T>(
          weight * (probability - (c == truth ? 1 : 0)) / static_cast<double>(pixels));
    }
  }
  loss.As<T>()[0] = static_cast<T>(total / static_cast<double>(pixels));
}

template <typename T>
void ReferenceMaps<T>::Argmax(const Tensor& logits, const Tensor& labels) {
  const int64_t classes = Channels(logits);
  CHECK(logits.elements() == labels.elements() * classes);
  for (int64_t pixel = 0; pixel < labels.elements(); ++pixel) {
    const T* score = logits.As<T>() + pixel * classes;
    labels.As<uint8_t>()[pixel] =
        static_cast<uint8_t>(std::max_element(score, score + classes) - score);
  }
}

template <typename T>
void ReferenceMaps<T>::CountClasses(const Tensor& labels, const Tensor& truth,
                                    const Tensor& counts) {
  const int64_t samples = counts.shape[1], classes = counts.shape[2];
  CHECK(counts.shape[0] == 2 && labels.shape == truth.shape && labels.shape[0] == samples);
  const int64_t area = labels.elements() / samples;
  float* const both = counts.As<float>();
  float* const either = both + samples * classes;
  std::fill_n(both, counts.elements(), 0.0F);
  for (int64_t i = 0; i < labels.elements(); ++i) {
    const int64_t seen = labels.As<uint8_t>()[i], real = truth.As<uint8_t>()[i];
    CHECK(seen < classes && real < classes) << "label=" << seen << " truth=" << real;
    const int64_t first = i / area * classes;
    if (seen == real) ++both[first + real];
    if (seen != real) ++either[first + seen];
    ++either[first + real];
  }
}

template class ReferenceMaps<float>;
template class ReferenceMaps<double>;

}  // namespace assay
