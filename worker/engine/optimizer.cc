#include "worker/engine/optimizer.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/adaptive.h"

namespace assay {
namespace {

using Kind = OptimizerOptions::Kind;

constexpr Kind kKinds[] = {Kind::kSgd, Kind::kAdam, Kind::kAdamW, Kind::kLamb};

// The part of a flat vector that begins at `offset` elements.
Tensor PartAt(const Tensor& flat, int64_t offset, const Shape& shape) {
  const size_t bytes = static_cast<size_t>(offset) * SizeOf(flat.dtype);
  return {static_cast<std::byte*>(flat.data) + bytes, shape, flat.dtype};
}

}  // namespace

absl::string_view OptimizerName(Kind kind) {
  switch (kind) {
    case Kind::kSgd:
      return "SGD";
    case Kind::kAdam:
      return "Adam";
    case Kind::kAdamW:
      return "AdamW";
    case Kind::kLamb:
      return "LAMB";
  }
  return "";
}

absl::StatusOr<Kind> ParseOptimizer(absl::string_view name) {
  for (const Kind kind : kKinds)
    if (absl::EqualsIgnoreCase(name, OptimizerName(kind))) return kind;
  return absl::InvalidArgumentError(
      absl::StrCat("no optimizer named \"", name, "\"; there are SGD, Adam, AdamW, LAMB"));
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options,
                                                         Backend* backend, Model* model) {
  if (options.kind == Kind::kSgd)
    return std::make_unique<SgdOptimizer>(backend, model, options.momentum);
  if (backend->adaptive() == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("backend ", backend->name(), " has no ",
                                                   OptimizerName(options.kind),
                                                   "; use onednn or reference"));
  return std::make_unique<AdaptiveOptimizer>(options, backend, model);
}

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
  int64_t offset = 0;
  for (const Parameter* parameter : model_->parameters()) {
    const Tensor velocity = PartAt(velocity_, offset, parameter->shape);
    offset += parameter->shape.elements();
    if (parameter->is_frozen) continue;
    backend_->Sgd({.learning_rate = learning_rate, .momentum = momentum_, .l2 = parameter->l2},
                  parameter->value, parameter->gradient, velocity);
  }
  model_->ParametersChanged();
}

AdaptiveOptimizer::AdaptiveOptimizer(const OptimizerOptions& options, Backend* backend,
                                     Model* model)
    : options_(options),
      backend_(backend),
      model_(model),
      state_(backend, SizeOf(backend->real())),
      scratch_(backend, SizeOf(backend->real())) {
  CHECK(backend->adaptive() != nullptr && options.kind != Kind::kSgd);
}

absl::Status AdaptiveOptimizer::Commit() {
  for (Tensor* moment : {&m_, &v_})
    state_.Reserve(Shape{model_->parameter_count()}, backend_->real(), moment);
  scratch_.Reserve(Shape{1}, backend_->real(), &sum_);
  RETURN_IF_ERROR(scratch_.Commit());
  return state_.Commit();
}

double AdaptiveOptimizer::Norm(const Tensor& x) {
  backend_->SumOfSquares(x, sum_);
  if (backend_->real() == DType::kFloat64) {
    double squares = 0;
    backend_->CopyOut(sum_, &squares);
    return std::sqrt(squares);
  }
  float squares = 0;
  backend_->CopyOut(sum_, &squares);
  return std::sqrt(double{squares});
}

double AdaptiveOptimizer::GradientScale() {
  if (options_.kind != Kind::kLamb || !(options_.max_grad_norm > 0)) return 1;
  const double norm = Norm(model_->Trained(model_->flat_gradients()));
  return norm > options_.max_grad_norm ? options_.max_grad_norm / norm : 1;
}

void AdaptiveOptimizer::MoveLamb(const AdaptiveStep& step, const Parameter& parameter,
                                 const Tensor& m, const Tensor& v) {
  AdaptiveOperations* adaptive = backend_->adaptive();
  const Tensor& direction = parameter.gradient;
  adaptive->LambDirection(step, parameter.value, direction, m, v);
  double ratio = 1;
  if (options_.weight_decay != 0) {
    const double length = Norm(parameter.value), direction_length = Norm(direction);
    if (length > 0 && direction_length > 0) ratio = length / direction_length;
  }
  adaptive->AddScaled(-step.learning_rate * ratio, direction, parameter.value);
}

void AdaptiveOptimizer::Step(double learning_rate) {
  AdaptiveOperations* adaptive = backend_->adaptive();
  const AdaptiveStep step = {.learning_rate = learning_rate,
                             .beta1 = options_.beta1,
                             .beta2 = options_.beta2,
                             .epsilon = options_.epsilon,
                             .weight_decay = options_.weight_decay,
                             .step = ++step_,
                             .gradient_scale = GradientScale()};
  int64_t offset = 0;
  for (const Parameter* parameter : model_->parameters()) {
    const Tensor m = PartAt(m_, offset, parameter->shape);
    const Tensor v = PartAt(v_, offset, parameter->shape);
    offset += parameter->shape.elements();
    if (parameter->is_frozen) continue;
    switch (options_.kind) {
      case Kind::kSgd:
        break;  // is another class
      case Kind::kAdam:
        adaptive->Adam(step, parameter->value, parameter->gradient, m, v);
        break;
      case Kind::kAdamW:
        adaptive->AdamW(step, parameter->value, parameter->gradient, m, v);
        break;
      case Kind::kLamb:
        MoveLamb(step, *parameter, m, v);
        break;
    }
  }
  model_->ParametersChanged();
}

}  // namespace assay
