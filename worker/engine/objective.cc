#include "worker/engine/objective.h"

#include <cmath>
#include <cstring>
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
                                                         std::span<const std::byte> targets,
                                                         int64_t samples) {
  const size_t count = static_cast<size_t>(samples * terms_per_sample());
  CHECK(targets.size() == count * sizeof(float));
  predictions_.resize(static_cast<size_t>(prediction.elements()));
  backend_->CopyOut(prediction, predictions_.data());
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    float target = 0;
    std::memcpy(&target, targets.data() + i * sizeof(float), sizeof(float));
    sum += std::abs(double{predictions_[i]} - double{target});
  }
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

absl::StatusOr<double> SegmentationObjective::QualitySum(const Tensor& prediction,
                                                         std::span<const std::byte> targets,
                                                         int64_t samples) {
  const size_t pixels = static_cast<size_t>(output_[1] * output_[2]);
  CHECK(targets.size() == static_cast<size_t>(samples) * pixels);
  backend_->maps()->Argmax(prediction, labels_);
  labels_on_host_.resize(static_cast<size_t>(labels_.elements()));
  backend_->CopyOut(labels_, labels_on_host_.data());
  std::vector<uint8_t> truth(targets.size());
  std::memcpy(truth.data(), targets.data(), targets.size());
  double sum = 0;
  for (size_t sample = 0; sample < static_cast<size_t>(samples); ++sample)
    sum += MeanIntersectionOverUnion(std::span(labels_on_host_).subspan(sample * pixels, pixels),
                                     std::span(truth).subspan(sample * pixels, pixels),
                                     static_cast<int>(output_[3]));
  return sum;
}

double MeanIntersectionOverUnion(std::span<const uint8_t> prediction,
                                 std::span<const uint8_t> truth, int classes) {
  CHECK(prediction.size() == truth.size() && classes > 0);
  const size_t count = static_cast<size_t>(classes);
  std::vector<int64_t> both(count), either(count);  // pixels of a class in prediction, truth
  for (size_t i = 0; i < truth.size(); ++i) {
    CHECK(prediction[i] < count && truth[i] < count);
    if (prediction[i] == truth[i]) {
      ++both[truth[i]];
      ++either[truth[i]];
    } else {
      ++either[prediction[i]];
      ++either[truth[i]];
    }
  }
  double sum = 0;
  for (size_t c = 0; c < count; ++c)
    sum += either[c] == 0 ? 1 : static_cast<double>(both[c]) / static_cast<double>(either[c]);
  return sum / static_cast<double>(classes);
}

}  // namespace assay
