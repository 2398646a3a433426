#include "worker/engine/backends/reference/reference_adaptive.h"

#include <cmath>

#include "common/log.h"

namespace assay {
namespace {

// The two moments of one element after `gradient`.
struct Moments {
  double m, v;
};

template <typename T>
Moments Advance(const AdaptiveStep& step, double gradient, T* m, T* v) {
  const Moments moments = {step.beta1 * double{*m} + (1 - step.beta1) * gradient,
                           step.beta2 * double{*v} + (1 - step.beta2) * gradient * gradient};
  *m = static_cast<T>(moments.m);
  *v = static_cast<T>(moments.v);
  return moments;
}

// What Adam divides the learning rate's multiple into: (m / c1) / (sqrt(v) / sqrt(c2) + epsilon).
double AdamDirection(const AdaptiveStep& step, const Moments& moments) {
  const double root = std::sqrt(moments.v) / std::sqrt(step.correction2());
  return moments.m / step.correction1() / (root + step.epsilon);
}

template <typename T>
double LengthOf(const Tensor& x) {
  double sum = 0;
  for (const T value : x.Span<T>())
    sum += double{value} * double{value};
  return std::sqrt(sum);
}

void CheckSizes(const Tensor& parameters, const Tensor& gradients, const Tensor& m,
                const Tensor& v) {
  CHECK(parameters.elements() == gradients.elements() && parameters.elements() == m.elements() &&
        parameters.elements() == v.elements());
}

}  // namespace

template <typename T>
void ReferenceAdaptive<T>::Adam(const AdaptiveStep& step, const Tensor& parameters,
                                const Tensor& gradients, const Tensor& m, const Tensor& v) {
  CheckSizes(parameters, gradients, m, v);
  for (int64_t i = 0; i < parameters.elements(); ++i) {
    T& p = parameters.As<T>()[i];
    const double gradient = double{gradients.As<T>()[i]} + step.weight_decay * double{p};
    const Moments moments = Advance(step, gradient, &m.As<T>()[i], &v.As<T>()[i]);
    p = static_cast<T>(double{p} - step.learning_rate * AdamDirection(step, moments));
  }
}

template <typename T>
void ReferenceAdaptive<T>::AdamW(const AdaptiveStep& step, const Tensor& parameters,
                                 const Tensor& gradients, const Tensor& m, const Tensor& v) {
  CheckSizes(parameters, gradients, m, v);
  for (int64_t i = 0; i < parameters.elements(); ++i) {
    T& p = parameters.As<T>()[i];
    const Moments moments =
        Advance(step, double{gradients.As<T>()[i]}, &m.As<T>()[i], &v.As<T>()[i]);
    const double decayed = double{p} * (1 - step.learning_rate * step.weight_decay);
    p = static_cast<T>(decayed - step.learning_rate * AdamDirection(step, moments));
  }
}

template <typename T>
void ReferenceAdaptive<T>::Lamb(const AdaptiveStep& step, std::span<const int64_t> sizes,
                                const Tensor& parameters, const Tensor& gradients, const Tensor& m,
                                const Tensor& v) {
  CheckSizes(parameters, gradients, m, v);
  const double length = LengthOf<T>(gradients);
  const bool is_long = step.max_length > 0 && length > step.max_length;
  const double factor = is_long ? step.max_length / length : 1;
  for (int64_t i = 0; i < parameters.elements(); ++i) {
    T& gradient = gradients.As<T>()[i];
    const Moments moments = Advance(step, factor * double{gradient}, &m.As<T>()[i], &v.As<T>()[i]);
    const double root = std::sqrt(moments.v / step.correction2());
    gradient = static_cast<T>(moments.m / step.correction1() / (root + step.epsilon) +
                              step.weight_decay * double{parameters.As<T>()[i]});
  }
  int64_t first = 0;
  for (const int64_t size : sizes) {
    const Tensor p = parameters.Part(first, {size}), u = gradients.Part(first, {size});
    AddScaled(-step.learning_rate * LambRatio(step, LengthOf<T>(p), LengthOf<T>(u)), u, p);
    first += size;
  }
}

template <typename T>
void ReferenceAdaptive<T>::AddScaled(double factor, const Tensor& x, const Tensor& y) {
  CHECK(x.elements() == y.elements());
  for (int64_t i = 0; i < x.elements(); ++i)
    y.As<T>()[i] = static_cast<T>(double{y.As<T>()[i]} + factor * double{x.As<T>()[i]});
}

template class ReferenceAdaptive<float>;
template class ReferenceAdaptive<double>;

}  // namespace assay
