#include "worker/engine/backends/cuda/cuda_adaptive.h"

#include <cmath>

#include "common/log.h"
#include "worker/engine/backends/cuda/cuda_backend.h"

namespace assay::cuda {
namespace {

// What the three optimizers have in common; moves along the direction without any decay.
AdaptiveUpdate UpdateOf(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
                        const Tensor& m, const Tensor& v) {
  CHECK(parameters.elements() == gradients.elements() && parameters.elements() == m.elements() &&
        parameters.elements() == v.elements());
  return {.p = parameters.As<float>(),
          .g = gradients.As<float>(),
          .m = m.As<float>(),
          .v = v.As<float>(),
          .squares = nullptr,
          .max_length = 0,
          .gradient_decay = 0,
          .beta1 = static_cast<float>(step.beta1),
          .rest1 = static_cast<float>(1 - step.beta1),
          .beta2 = static_cast<float>(step.beta2),
          .rest2 = static_cast<float>(1 - step.beta2),
          .m_factor = static_cast<float>(1 / step.correction1()),
          .root_factor = static_cast<float>(1 / std::sqrt(step.correction2())),
          .epsilon = static_cast<float>(step.epsilon),
          .direction_decay = 0,
          .moves = true,
          .keep = 1,
          .rate = static_cast<float>(step.learning_rate),
          .count = parameters.elements()};
}

}  // namespace

Tensor CudaAdaptive::InScratch(const Shape& shape) const {
  return {backend_->scratch(), shape, DType::kFloat32};
}

void CudaAdaptive::Adam(const AdaptiveStep& step, const Tensor& parameters, const Tensor& gradients,
                        const Tensor& m, const Tensor& v) {
  AdaptiveUpdate update = UpdateOf(step, parameters, gradients, m, v);
  update.gradient_decay = static_cast<float>(step.weight_decay);
  backend_->Run("adam", update);
}

void CudaAdaptive::AdamW(const AdaptiveStep& step, const Tensor& parameters,
                         const Tensor& gradients, const Tensor& m, const Tensor& v) {
  AdaptiveUpdate update = UpdateOf(step, parameters, gradients, m, v);
  update.keep = static_cast<float>(1 - step.learning_rate * step.weight_decay);
  backend_->Run("adamw", update);
}

void CudaAdaptive::Lamb(const AdaptiveStep& step, std::span<const int64_t> sizes,
                        const Tensor& parameters, const Tensor& gradients, const Tensor& m,
                        const Tensor& v) {
  AdaptiveUpdate update = UpdateOf(step, parameters, gradients, m, v);
  update.direction_decay = static_cast<float>(step.weight_decay);
  update.moves = false;
  if (step.max_length > 0) {
    const Tensor squares = InScratch({1});
    backend_->SumOfSquares(gradients, squares);
    update.squares = squares.As<float>();
    update.max_length = static_cast<float>(step.max_length);
  }
  backend_->Run("lamb direction", update);
  if (step.weight_decay == 0) {
    AddScaled(-step.learning_rate, gradients, parameters);
    return;
  }
  int64_t first = 0;
  for (const int64_t size : sizes) {
    MoveLamb(step.learning_rate, gradients.Part(first, {size}), parameters.Part(first, {size}));
    first += size;
  }
}

void CudaAdaptive::MoveLamb(double rate, const Tensor& direction, const Tensor& parameters) {
  const Tensor squares = InScratch({2});
  const int64_t count = parameters.elements();
  backend_->SumRows("lengths", PairedSquares{parameters.As<float>(), direction.As<float>()}, count,
                    1, squares);
  backend_->Run("lamb move", LambMove{.rate = static_cast<float>(rate),
                                      .squares = squares.As<float>(),
                                      .direction = direction.As<float>(),
                                      .p = parameters.As<float>(),
                                      .count = count});
}

void CudaAdaptive::AddScaled(double factor, const Tensor& x, const Tensor& y) {
  backend_->maps()->Combine(factor, x, 1, y);
}

}  // namespace assay::cuda
