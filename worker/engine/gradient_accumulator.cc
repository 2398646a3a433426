#include "worker/engine/gradient_accumulator.h"

#include "absl/strings/str_cat.h"

#include "worker/engine/adaptive.h"

namespace assay {

absl::Status GradientAccumulator::Plan(Arena* arena) {
  if (batches_ < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("gradient accumulation must be at least 1, is ", batches_));
  if (batches_ == 1) return absl::OkStatus();
  if (backend_->adaptive() == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat("backend ", backend_->name(), " cannot accumulate gradients"));
  arena->Reserve(Shape{model_->parameter_count()}, DType::kFloat32, &sums_);
  return absl::OkStatus();
}

bool GradientAccumulator::Add() {
  if (batches_ == 1) return true;
  const Tensor gradients = model_->Trained(model_->flat_gradients());
  const Tensor sums = model_->Trained(sums_);
  const bool is_first = added_ == 0;
  if (is_first) {
    backend_->Copy(gradients, sums);
  } else {
    backend_->adaptive()->AddScaled(1, gradients, sums);
  }
  if (++added_ < batches_) return false;
  added_ = 0;
  backend_->Copy(sums, gradients);
  backend_->adaptive()->AddScaled(1.0 / batches_ - 1, sums, gradients);
  return true;
}

}  // namespace assay
