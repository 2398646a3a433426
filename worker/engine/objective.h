// What a model is trained for: the loss that its gradient comes from, and the quality by which it
// is judged.

#ifndef WORKER_ENGINE_OBJECTIVE_H_
#define WORKER_ENGINE_OBJECTIVE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/engine/arena.h"
#include "worker/engine/backend.h"
#include "worker/engine/tensor.h"

namespace assay {

// Belongs to one model and its backend, which must outlive it. Not thread-safe.
class Objective {
 public:
  virtual ~Objective() = default;

  // What the targets of one batch are, batch first.
  virtual Shape target_shape() const = 0;
  virtual DType target_type() const = 0;
  // Reserves what it needs. INVALID_ARGUMENT: the backend lacks an operation.
  virtual absl::Status Plan(Arena* arena) = 0;
  // Once, when the arena's memory is there.
  virtual void Start() {}

  // Mean loss of the batch and its gradient.
  //   prediction, gradient: the model's output; loss: (1)
  virtual void Loss(const Tensor& prediction, const Tensor& target, const Tensor& gradient,
                    const Tensor& loss) = 0;

  // Sum over the first `samples` samples of the batch of the quality, times terms_per_sample().
  // Waits for the work before it. OUT_OF_RANGE: a prediction is not finite.
  virtual absl::StatusOr<double> QualitySum(const Tensor& prediction, const Tensor& target,
                                            int64_t samples) = 0;
  virtual int64_t terms_per_sample() const { return 1; }
};

// Regression: mean squared error as loss, sum of absolute errors as quality.
class SquaredErrorObjective : public Objective {
 public:
  // `output`: of the model, (B, outputs).
  SquaredErrorObjective(Backend* backend, const Shape& output)
      : backend_(backend), output_(output) {}

  Shape target_shape() const override { return output_; }
  DType target_type() const override { return DType::kFloat32; }
  absl::Status Plan(Arena*) override { return absl::OkStatus(); }
  void Loss(const Tensor& prediction, const Tensor& target, const Tensor& gradient,
            const Tensor& loss) override;
  absl::StatusOr<double> QualitySum(const Tensor& prediction, const Tensor& target,
                                    int64_t samples) override;
  int64_t terms_per_sample() const override { return output_.elements() / output_[0]; }

 private:
  Backend* const backend_;
  const Shape output_;
  std::vector<float> predictions_, targets_;  // on the host
};

// Segmentation: class-weighted cross-entropy as loss, mean intersection over union as quality.
class SegmentationObjective : public Objective {
 public:
  // `output`: of the model, (B, H, W, classes). `weights`: one for each class.
  SegmentationObjective(Backend* backend, const Shape& output, std::vector<double> weights);

  Shape target_shape() const override { return {output_[0], output_[1], output_[2]}; }
  DType target_type() const override { return DType::kUint8; }
  absl::Status Plan(Arena* arena) override;
  void Start() override;
  void Loss(const Tensor& prediction, const Tensor& target, const Tensor& gradient,
            const Tensor& loss) override;
  absl::StatusOr<double> QualitySum(const Tensor& prediction, const Tensor& target,
                                    int64_t samples) override;

 private:
  Backend* const backend_;
  const Shape output_;
  const std::vector<double> class_weights_;
  Tensor weights_;  // (classes)
  Tensor labels_;   // uint8 (B, H, W), predicted
  Tensor counts_;   // as MapOperations::CountClasses has it
  std::vector<float> counts_on_host_;
};

// Intersection over union of one sample: for each class TP / (TP + FP + FN), where a class that is
// in neither counts 1, averaged over the classes. Not the pooled confusion matrix: the reference
// averages this over samples (mlcommons/hpc, deepcam, utils/losses.py and driver/validator.py).
//   both, either: of each class, as MapOperations::CountClasses counts them.
double MeanIntersectionOverUnion(std::span<const float> both, std::span<const float> either);

}  // namespace assay

#endif  // WORKER_ENGINE_OBJECTIVE_H_
