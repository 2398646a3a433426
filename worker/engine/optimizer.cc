#include "worker/engine/optimizer.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "worker/engine/adaptive.h"

namespace assay {
namespace {

using Kind = OptimizerOptions::Kind;

constexpr Kind kKinds[] = {Kind::kSgd, Kind::kAdam, Kind::kAdamW, Kind::kLamb};

std::vector<int64_t> TrainedSizes(const Model& model) {
  std::vector<int64_t> sizes;
  for (const Parameter* parameter : model.parameters())
    if (!parameter->is_frozen) sizes.push_back(parameter->shape.elements());
  return sizes;
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
                                                   "; use cuda, onednn or reference"));
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
    const Tensor velocity = velocity_.Part(offset, parameter->shape);
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
      state_(backend, SizeOf(backend->real())) {
  CHECK(backend->adaptive() != nullptr && options.kind != Kind::kSgd);
}

absl::Status AdaptiveOptimizer::Commit() {
  for (Tensor* moment : {&m_, &v_})
    state_.Reserve(Shape{model_->parameter_count()}, backend_->real(), moment);
  return state_.Commit();
}

void AdaptiveOptimizer::Step(double learning_rate) {
  const AdaptiveStep step = {.learning_rate = learning_rate,
                             .beta1 = options_.beta1,
                             .beta2 = options_.beta2,
                             .epsilon = options_.epsilon,
                             .weight_decay = options_.weight_decay,
                             .step = ++step_,
                             .max_length = options_.max_grad_norm};
  const Tensor values = model_->Trained(model_->flat_parameters());
  const Tensor gradients = model_->Trained(model_->flat_gradients());
  const Tensor m = model_->Trained(m_), v = model_->Trained(v_);
  switch (options_.kind) {
    case Kind::kSgd:
      break;  // is another class
    case Kind::kAdam:
      backend_->adaptive()->Adam(step, values, gradients, m, v);
      break;
    case Kind::kAdamW:
      backend_->adaptive()->AdamW(step, values, gradients, m, v);
      break;
    case Kind::kLamb:
      backend_->adaptive()->Lamb(step, TrainedSizes(*model_), values, gradients, m, v);
      break;
  }
  model_->ParametersChanged();
}

}  // namespace assay
