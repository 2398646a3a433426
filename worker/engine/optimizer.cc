#include "worker/engine/optimizer.h"

#include "common/log.h"
#include "common/status.h"

namespace assay {

SgdOptimizer::SgdOptimizer(Backend* backend, Model* model, double momentum)
    : backend_(backend),
      model_(model),
      momentum_(momentum),
      state_(backend, SizeOf(backend->real())) {}

absl::Status SgdOptimizer::Commit() {
  state_.Reserve(Shape{model_->parameter_count()}, backend_->real(), &velocity_);
  return state_.Commit();
}

void SgdOptimizer::Step(double learning_rate) {
  std::byte* velocity = static_cast<std::byte*>(velocity_.data);
  for (const Parameter* parameter : model_->parameters()) {
    const Tensor part = {velocity, parameter->shape, backend_->real()};
    backend_->Sgd({.learning_rate = learning_rate, .momentum = momentum_, .l2 = parameter->l2},
                  parameter->value, parameter->gradient, part);
    velocity += part.bytes();
  }
  model_->ParametersChanged();
}

}  // namespace assay
