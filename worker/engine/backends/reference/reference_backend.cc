#include "worker/engine/backends/reference/reference_backend.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "worker/engine/backends/reference/reference_convolution.h"

namespace assay {
namespace {

constexpr std::align_val_t kAlignment{64};

// Offsets of a pooling window inside x, one per position d*4 + h*2 + w, for one output position.
struct Window {
  std::array<int64_t, 8> offsets;  // of channel 0
};

// The window of the `row`-th output position of a (B, D, H, W, C) pooled by two.
Window WindowAt(const Shape& x, int64_t row) {
  const int64_t depth = x[1] / 2, height = x[2] / 2, width = x[3] / 2;
  const int64_t w = row % width * 2, h = row / width % height * 2;
  const int64_t d = row / (width * height) % depth * 2, b = row / (width * height * depth);
  Window window;
  for (int64_t i = 0; i < 8; ++i) {
    const int64_t dd = d + i / 4, hh = h + i / 2 % 2, ww = w + i % 2;
    window.offsets[static_cast<size_t>(i)] = (((b * x[1] + dd) * x[2] + hh) * x[3] + ww) * x[4];
  }
  return window;
}

Shape Pooled(const Shape& x) {
  return {x[0], x[1] / 2, x[2] / 2, x[3] / 2, x[4]};
}

}  // namespace

template <typename T>
absl::StatusOr<void*> ReferenceBackend<T>::Allocate(size_t bytes) {
  void* memory = ::operator new(bytes, kAlignment, std::nothrow);
  if (memory == nullptr)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", bytes, " bytes for the model; reduce the batch"));
  std::memset(memory, 0, bytes);
  return memory;
}

template <typename T>
void ReferenceBackend<T>::Free(void* memory) {
  ::operator delete(memory, kAlignment);
}

template <typename T>
void ReferenceBackend<T>::CopyIn(const void* host, const Tensor& dst) {
  std::memcpy(dst.data, host, dst.bytes());
}

template <typename T>
void ReferenceBackend<T>::CopyOut(const Tensor& src, void* host) {
  std::memcpy(host, src.data, src.bytes());
}

template <typename T>
void ReferenceBackend<T>::Copy(const Tensor& src, const Tensor& dst) {
  CHECK(src.bytes() == dst.bytes());
  std::memcpy(dst.data, src.data, src.bytes());
}

template <typename T>
void ReferenceBackend<T>::Log1p(const Tensor& counts, const Tensor& y) {
  CHECK(counts.shape == y.shape);
  const int16_t* count = counts.As<int16_t>();
  T* result = y.As<T>();
  for (int64_t i = 0; i < y.elements(); ++i)
    result[i] = static_cast<T>(std::log(static_cast<double>(count[i]) + 1.0));
}

template <typename T>
absl::StatusOr<std::unique_ptr<Convolution>> ReferenceBackend<T>::MakeConvolution(
    const ConvShape& shape) {
  return std::make_unique<ReferenceConvolution<T>>(shape);
}

template <typename T>
void ReferenceBackend<T>::PoolForward(const Tensor& x, const Tensor& bias, double slope,
                                      const Tensor& y, const Tensor& code) {
  CHECK(y.shape == Pooled(x.shape) && code.shape == y.shape && bias.elements() == x.shape[4]);
  const int64_t channels = x.shape[4];
  for (int64_t row = 0; row < y.elements() / channels; ++row) {
    const Window window = WindowAt(x.shape, row);
    for (int64_t c = 0; c < channels; ++c) {
      size_t best = 0;
      T max = x.As<T>()[window.offsets[0] + c];
      for (size_t i = 1; i < 8; ++i) {
        const T value = x.As<T>()[window.offsets[i] + c];
        if (value > max) max = value, best = i;
      }
      const T sum = max + bias.As<T>()[c];
      y.As<T>()[row * channels + c] = sum > 0 ? sum : static_cast<T>(slope) * sum;
      code.As<uint8_t>()[row * channels + c] = static_cast<uint8_t>(best | (sum > 0 ? 8U : 0U));
    }
  }
}

template <typename T>
void ReferenceBackend<T>::PoolBackward(const Tensor& dy, const Tensor& code, double slope,
                                       const Tensor& dx, const Tensor& dbias) {
  CHECK(dy.shape == Pooled(dx.shape) && code.shape == dy.shape);
  const int64_t channels = dx.shape[4];
  std::vector<double> sums(static_cast<size_t>(channels));
  std::fill_n(dx.As<T>(), dx.elements(), T{0});
  for (int64_t row = 0; row < dy.elements() / channels; ++row) {
    const Window window = WindowAt(dx.shape, row);
    for (int64_t c = 0; c < channels; ++c) {
      const uint8_t bits = code.As<uint8_t>()[row * channels + c];
      const T incoming = dy.As<T>()[row * channels + c];
      const T gradient = (bits & 8U) != 0 ? incoming : static_cast<T>(slope) * incoming;
      dx.As<T>()[window.offsets[bits & 7U] + c] = gradient;
      sums[static_cast<size_t>(c)] += gradient;
    }
  }
  for (int64_t c = 0; c < channels; ++c)
    dbias.As<T>()[c] = static_cast<T>(sums[static_cast<size_t>(c)]);
}

template <typename T>
void ReferenceBackend<T>::DenseForward(const Tensor& x, const Tensor& w, const Tensor& y) {
  const int64_t rows = x.shape[0], in = w.shape[0], out = w.shape[1];
  CHECK(x.shape == Shape({rows, in}) && y.shape == Shape({rows, out}));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < out; ++o) {
      double sum = 0;
      for (int64_t i = 0; i < in; ++i)
        sum += double{x.As<T>()[r * in + i]} * w.As<T>()[i * out + o];
      y.As<T>()[r * out + o] = static_cast<T>(sum);
    }
}

template <typename T>
void ReferenceBackend<T>::DenseBackwardData(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  const int64_t rows = dy.shape[0], in = w.shape[0], out = w.shape[1];
  CHECK(dx.shape == Shape({rows, in}) && dy.shape == Shape({rows, out}));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < in; ++i) {
      double sum = 0;
      for (int64_t o = 0; o < out; ++o)
        sum += double{dy.As<T>()[r * out + o]} * w.As<T>()[i * out + o];
      dx.As<T>()[r * in + i] = static_cast<T>(sum);
    }
}

template <typename T>
void ReferenceBackend<T>::DenseBackwardWeights(const Tensor& x, const Tensor& dy,
                                               const Tensor& dw) {
  const int64_t rows = dy.shape[0], in = dw.shape[0], out = dw.shape[1];
  CHECK(x.shape == Shape({rows, in}) && dy.shape == Shape({rows, out}));
  for (int64_t i = 0; i < in; ++i)
    for (int64_t o = 0; o < out; ++o) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r)
        sum += double{x.As<T>()[r * in + i]} * dy.As<T>()[r * out + o];
      dw.As<T>()[i * out + o] = static_cast<T>(sum);
    }
}

template <typename T>
void ReferenceBackend<T>::ActivationForward(const Tensor& y, const Tensor& bias,
                                            const Activation& f) {
  CHECK(bias.elements() == y.shape[1]);
  const T parameter = static_cast<T>(f.parameter);
  for (int64_t i = 0; i < y.elements(); ++i) {
    T& value = y.As<T>()[i];
    value += bias.As<T>()[i % y.shape[1]];
    switch (f.kind) {
      case Activation::Kind::kLeakyRelu:
        value = value > 0 ? value : parameter * value;
        break;
      case Activation::Kind::kScaledTanh:
        value = parameter * std::tanh(value);
        break;
    }
  }
}

template <typename T>
void ReferenceBackend<T>::ActivationBackward(const Tensor& y, const Activation& f, const Tensor& dy,
                                             const Tensor& dbias) {
  CHECK(y.shape == dy.shape && dbias.elements() == y.shape[1]);
  const T parameter = static_cast<T>(f.parameter);
  std::vector<double> sums(static_cast<size_t>(y.shape[1]));
  for (int64_t i = 0; i < y.elements(); ++i) {
    const T value = y.As<T>()[i];
    T& gradient = dy.As<T>()[i];
    switch (f.kind) {
      case Activation::Kind::kLeakyRelu:
        gradient = value > 0 ? gradient : parameter * gradient;
        break;
      case Activation::Kind::kScaledTanh:
        gradient *= parameter - value * value / parameter;
        break;
    }
    sums[static_cast<size_t>(i % y.shape[1])] += gradient;
  }
  for (size_t c = 0; c < sums.size(); ++c)
    dbias.As<T>()[c] = static_cast<T>(sums[c]);
}

template <typename T>
void ReferenceBackend<T>::Dropout(const DropoutMask& mask, const Tensor& y, const Tensor& scale) {
  CHECK(y.shape == scale.shape && mask.rate >= 0 && mask.rate < 1) << "rate=" << mask.rate;
  const T kept = static_cast<T>(1 / (1 - mask.rate));
  for (int64_t i = 0; i < y.elements(); ++i) {
    const float draw = mask.stream.Uniform(mask.first_index + static_cast<uint64_t>(i));
    scale.As<T>()[i] = double{draw} >= mask.rate ? kept : T{0};
  }
  Multiply(scale, y);
}

template <typename T>
void ReferenceBackend<T>::Multiply(const Tensor& factor, const Tensor& x) {
  CHECK(factor.elements() == x.elements());
  for (int64_t i = 0; i < x.elements(); ++i)
    x.As<T>()[i] *= factor.As<T>()[i];
}

template <typename T>
void ReferenceBackend<T>::SquaredError(const Tensor& prediction, const Tensor& target,
                                       const Tensor& gradient, const Tensor& loss) {
  CHECK(prediction.shape == target.shape && gradient.shape == target.shape);
  const double count = static_cast<double>(target.elements());
  double sum = 0;
  for (int64_t i = 0; i < target.elements(); ++i) {
    const double error = double{prediction.As<T>()[i]} - target.As<T>()[i];
    sum += error * error;
    gradient.As<T>()[i] = static_cast<T>(2 * error / count);
  }
  loss.As<T>()[0] = static_cast<T>(sum / count);
}

template <typename T>
void ReferenceBackend<T>::Sgd(const SgdStep& step, const Tensor& parameters,
                              const Tensor& gradients, const Tensor& velocity) {
  CHECK(parameters.elements() == gradients.elements());
  CHECK(parameters.elements() == velocity.elements());
  const T rate = static_cast<T>(step.learning_rate), momentum = static_cast<T>(step.momentum);
  const T decay = static_cast<T>(2 * step.l2);
  for (int64_t i = 0; i < parameters.elements(); ++i) {
    T& w = parameters.As<T>()[i];
    T& v = velocity.As<T>()[i];
    v = momentum * v - rate * (gradients.As<T>()[i] + decay * w);
    w += v;
  }
}

template <typename T>
void ReferenceBackend<T>::SumOfSquares(const Tensor& x, const Tensor& sum) {
  double total = 0;
  for (const T value : x.Span<T>())
    total += double{value} * value;
  sum.As<T>()[0] = static_cast<T>(total);
}

template class ReferenceBackend<float>;
template class ReferenceBackend<double>;

}  // namespace assay
