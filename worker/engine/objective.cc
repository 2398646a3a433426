#include "worker/engine/objective.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "worker/engine/maps.h"

namespace assay {

void SquaredErrorObjective::Loss(const Tensor& prediction, const Tensor& target,
                                 const Tensor& gradient, const Tensor& loss) {
  backend_->SquaredError(prediction, target, gradient, loss);
}

absl::StatusOr<double> SquaredErrorObjective::QualitySum(const Tensor& prediction,
                                                         const Tensor& target, int64_t samples) {
  CHECK(prediction.elements() == target.elements());
  predictions_.resize(static_cast<size_t>(prediction.elements()));
  targets_.resize(predictions_.size());
  backend_->CopyOut(prediction, predictions_.data());
  backend_->CopyOut(target, targets_.data());
  double sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(samples * terms_per_sample()); ++i)
    sum += std::abs(double{predictions_[i]} - double{targets_[i]});
  if (!std::isfinite(sum))
    return absl::OutOfRangeError("a prediction or target of the evaluation is not finite");
  return sum;
}

SegmentationObjective::SegmentationObjective(Backend* backend, const Shape& output,
                                             std::vector<double> weights)
    : backend_(backend), output_(output), class_weights_(std::move(weights)) {
  CHECK(output.rank() == 4 && output[3] == std::ssize(class_weights_));
}

absl::Status SegmentationObjective::Plan(Arena* arena) {
  if (backend_->maps() == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(
        "backend ", backend_->name(), " has no operations on maps; use cuda, onednn or reference"));
  arena->Reserve(Shape{output_[3]}, backend_->real(), &weights_);
  arena->Reserve(target_shape(), DType::kUint8, &labels_);
  arena->Reserve(Shape{2, output_[0], output_[3]}, DType::kFloat32, &counts_);
  return absl::OkStatus();
}

void SegmentationObjective::Start() {
  if (backend_->real() == DType::kFloat64) {
    backend_->CopyIn(class_weights_.data(), weights_);
  } else {
    const std::vector<float> narrow(class_weights_.begin(), class_weights_.end());
    backend_->CopyIn(narrow.data(), weights_);
  }
}

void SegmentationObjective::Loss(const Tensor& prediction, const Tensor& target,
                                 const Tensor& gradient, const Tensor& loss) {
  backend_->maps()->SoftmaxCrossEntropy(prediction, target, weights_, gradient, loss);
}

// What is counted stays where the predictions are; only the counts leave.
absl::StatusOr<double> SegmentationObjective::QualitySum(const Tensor& prediction,
                                                         const Tensor& target, int64_t samples) {
  backend_->maps()->Argmax(prediction, labels_);
  backend_->maps()->CountClasses(labels_, target, counts_);
  counts_on_host_.resize(static_cast<size_t>(counts_.elements()));
  backend_->CopyOut(counts_, counts_on_host_.data());
  const size_t classes = static_cast<size_t>(output_[3]), planes = counts_on_host_.size() / 2;
  const auto of_classes = [&](size_t first) {
    return std::span<const float>(counts_on_host_).subspan(first, classes);
  };
  double sum = 0;
  for (size_t first = 0; first < static_cast<size_t>(samples) * classes; first += classes)
    sum += MeanIntersectionOverUnion(of_classes(first), of_classes(planes + first));
  return sum;
}

double MeanIntersectionOverUnion(std::span<const float> both, std::span<const float> either) {
  CHECK(both.size() == either.size() && !both.empty());
  double sum = 0;
  for (size_t c = 0; c < both.size(); ++c)
    sum += either[c] == 0 ? 1 : double{both[c]} / double{either[c]};
  return sum / static_cast<double>(both.size());
}

}  // namespace assay
