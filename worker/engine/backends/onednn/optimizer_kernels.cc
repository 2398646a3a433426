#include "worker/engine/backends/onednn/optimizer_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/log.h"
#include "worker/engine/backends/onednn/vector_clones.h"

namespace assay {
namespace {

// Elements that one thread takes at a time; four blocks fit in a 1 MiB second-level cache.
constexpr int64_t kBlock = 1 << 14;

// The numbers of a step as the loops need them. One direction serves all three optimizers:
//   d = m * m_factor / (sqrt(v) * root_factor + epsilon) + direction_decay * p.
struct Terms {
  float gradient_scale, gradient_decay;  // g <- scale * g + decay * p
  float beta1, rest1, beta2, rest2;      // rest = 1 - beta, rounded once
  float m_factor, root_factor, epsilon;
  float direction_decay;
  float keep, rate;  // p <- keep * p - rate * d
};

Terms TermsOf(const AdaptiveStep& step) {
  return {.gradient_scale = 1,
          .gradient_decay = 0,
          .beta1 = static_cast<float>(step.beta1),
          .rest1 = static_cast<float>(1 - step.beta1),
          .beta2 = static_cast<float>(step.beta2),
          .rest2 = static_cast<float>(1 - step.beta2),
          .m_factor = static_cast<float>(1 / step.correction1()),
          .root_factor = static_cast<float>(1 / std::sqrt(step.correction2())),
          .epsilon = static_cast<float>(step.epsilon),
          .direction_decay = 0,
          .keep = 1,
          .rate = static_cast<float>(step.learning_rate)};
}

// The four tensors of a block.
struct Block {
  int64_t size;
  float* p;
  float* g;
  float* m;
  float* v;
};

ASSAY_VECTOR_CLONES
void MomentsRange(const Terms& t, const Block& block) {
  const float* __restrict p = block.p;
  float* __restrict g = block.g;
  float* __restrict m = block.m;
  float* __restrict v = block.v;
  const float scale = t.gradient_scale, decay = t.gradient_decay;
  const float beta1 = t.beta1, beta2 = t.beta2, rest1 = t.rest1, rest2 = t.rest2;
  const float factor = t.m_factor, root = t.root_factor, epsilon = t.epsilon;
  const float direction_decay = t.direction_decay;
  for (int64_t i = 0; i < block.size; ++i) {
    const float gradient = scale * g[i] + decay * p[i];
    m[i] = beta1 * m[i] + rest1 * gradient;
    v[i] = beta2 * v[i] + rest2 * gradient * gradient;
    g[i] = m[i] * factor / (__builtin_sqrtf(v[i]) * root + epsilon) + direction_decay * p[i];
  }
}

ASSAY_VECTOR_CLONES
void MoveRange(const Terms& t, const Block& block) {
  float* __restrict p = block.p;
  const float* __restrict direction = block.g;
  const float keep = t.keep, rate = t.rate;
  for (int64_t i = 0; i < block.size; ++i)
    p[i] = keep * p[i] - rate * direction[i];
}

ASSAY_VECTOR_CLONES
void AddScaledRange(int64_t size, float factor, const float* __restrict x, float* __restrict y) {
  for (int64_t i = 0; i < size; ++i)
    y[i] += factor * x[i];
}

ASSAY_VECTOR_CLONES
double SquaresRange(int64_t size, const float* __restrict x) {
  constexpr int64_t kLanes = 16;
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      sums[lane] += double{x[i + lane]} * double{x[i + lane]};
  double total = 0;
  for (; i < size; ++i)
    total += double{x[i]} * double{x[i]};
  for (const double sum : sums)
    total += sum;
  return total;
}

template <typename Work>
void ForEachBlock(int64_t size, Work work) {
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < size; first += kBlock)
    work(first, std::min(kBlock, size - first));
}

double LengthOf(const Tensor& x) {
  return std::sqrt(SumOfSquaresKernel(x.Span<float>()));
}

// Overwrites the gradients by the direction; moves the parameters along it if asked.
void Step(const Terms& terms, bool moves, const Tensor& parameters, const Tensor& gradients,
          const Tensor& m, const Tensor& v) {
  CHECK(parameters.elements() == gradients.elements() && parameters.elements() == m.elements() &&
        parameters.elements() == v.elements());
  ForEachBlock(parameters.elements(), [&](int64_t first, int64_t size) {
    const Block block = {size, parameters.As<float>() + first, gradients.As<float>() + first,
                         m.As<float>() + first, v.As<float>() + first};
    MomentsRange(terms, block);
    if (moves) MoveRange(terms, block);
  });
}

}  // namespace

double SumOfSquaresKernel(std::span<const float> x) {
  const int64_t size = std::ssize(x), blocks = (size + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<size_t>(blocks));
  ForEachBlock(size, [&](int64_t first, int64_t count) {
    sums[static_cast<size_t>(first / kBlock)] = SquaresRange(count, x.data() + first);
  });
  double total = 0;
  for (const double sum : sums)
    total += sum;
  return total;
}

void OnednnAdaptive::Adam(const AdaptiveStep& step, const Tensor& parameters,
                          const Tensor& gradients, const Tensor& m, const Tensor& v) {
  Terms terms = TermsOf(step);
  terms.gradient_decay = static_cast<float>(step.weight_decay);
  Step(terms, true, parameters, gradients, m, v);
}

void OnednnAdaptive::AdamW(const AdaptiveStep& step, const Tensor& parameters,
                           const Tensor& gradients, const Tensor& m, const Tensor& v) {
  Terms terms = TermsOf(step);
  terms.keep = static_cast<float>(1 - step.learning_rate * step.weight_decay);
  Step(terms, true, parameters, gradients, m, v);
}

// Tensor by tensor, so that most are still in a cache when they are read again.
void OnednnAdaptive::Lamb(const AdaptiveStep& step, std::span<const int64_t> sizes,
                          const Tensor& parameters, const Tensor& gradients, const Tensor& m,
                          const Tensor& v) {
  Terms terms = TermsOf(step);
  if (step.max_length > 0) {
    const double length = LengthOf(gradients);
    if (length > step.max_length)
      terms.gradient_scale = static_cast<float>(step.max_length / length);
  }
  terms.direction_decay = static_cast<float>(step.weight_decay);
  int64_t first = 0;
  for (const int64_t size : sizes) {
    const Tensor p = parameters.Part(first, {size}), u = gradients.Part(first, {size});
    Step(terms, false, p, u, m.Part(first, {size}), v.Part(first, {size}));
    const double ratio = step.weight_decay == 0 ? 1 : LambRatio(step, LengthOf(p), LengthOf(u));
    AddScaled(-step.learning_rate * ratio, u, p);
    first += size;
  }
}

void OnednnAdaptive::AddScaled(double factor, const Tensor& x, const Tensor& y) {
  CHECK(x.elements() == y.elements());
  ForEachBlock(x.elements(), [&](int64_t first, int64_t size) {
    AddScaledRange(size, static_cast<float>(factor), x.As<float>() + first, y.As<float>() + first);
  });
}

}  // namespace assay
