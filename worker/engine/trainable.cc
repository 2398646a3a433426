#include "worker/engine/trainable.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/random.h"
#include "common/status.h"
#include "worker/engine/rank_average.h"

namespace assay {
namespace {

constexpr size_t kBufferAlignment = 64;

// Keys of the sections of work that repeat (Backend::BeginSection).
enum : int { kGradientSection, kUpdateSection, kEvaluationSection };

}  // namespace

absl::StatusOr<std::unique_ptr<Trainable>> Trainable::Make(std::unique_ptr<Backend> backend,
                                                           std::unique_ptr<Model> model,
                                                           const TrainableOptions& options) {
  std::unique_ptr<Trainable> trainable(
      new Trainable(std::move(backend), std::move(model), options));
  RETURN_IF_ERROR(trainable->Commit());
  trainable->model_->Initialize(options.seed);
  return trainable;
}

Trainable::Trainable(std::unique_ptr<Backend> backend, std::unique_ptr<Model> model,
                     const TrainableOptions& options)
    : backend_(std::move(backend)),
      model_(std::move(model)),
      options_(options),
      optimizer_(backend_.get(), model_.get(), options.momentum),
      buffers_(backend_.get(), kBufferAlignment),
      parameters_(backend_.get()),
      velocity_(backend_.get()),
      gradients_(backend_.get()) {
  CHECK(backend_->real() == DType::kFloat32);
}

absl::Status Trainable::Commit() {
  RETURN_IF_ERROR(Annotate(optimizer_.Commit(), "optimizer state"));
  const Shape output = model_->output();
  buffers_.Reserve(model_->input(), DType::kInt16, &input_);
  buffers_.Reserve(output, DType::kFloat32, &targets_);
  buffers_.Reserve(output, DType::kFloat32, &output_gradient_);
  buffers_.Reserve(Shape{1}, DType::kFloat32, &loss_);
  buffers_.Reserve(Shape{1}, DType::kFloat32, &square_sum_);
  predictions_.resize(static_cast<size_t>(output.elements()));
  return Annotate(buffers_.Commit(), "input buffers");
}

// Copies a batch in; samples that a short batch lacks keep older values.
void Trainable::CopyIn(const Batch& batch) {
  const int64_t samples = std::ssize(batch.targets) / outputs();
  CHECK(samples >= 1 && samples <= batch_size() &&
        std::ssize(batch.targets) == samples * outputs() &&
        std::ssize(batch.voxels) == samples * voxels_per_sample())
      << "targets=" << batch.targets.size() << " voxels=" << batch.voxels.size()
      << " input=" << input_.shape.ToString();
  const Tensor input = {input_.data, Shape{std::ssize(batch.voxels)}, DType::kInt16};
  const Tensor targets = {targets_.data, Shape{std::ssize(batch.targets)}, DType::kFloat32};
  backend_->CopyIn(batch.voxels.data(), input);
  backend_->CopyIn(batch.targets.data(), targets);
}

absl::StatusOr<float> Trainable::TrainStep(const Batch& batch, const StepPosition& position,
                                           double learning_rate, ReduceGradients reduce) {
  CHECK(std::ssize(batch.targets) == batch_size() * outputs()) << "a short batch in training";
  CopyIn(batch);
  const Pass pass = {
      .is_training = true,
      .step = position.step,
      .dropout = Stream(options_.seed, Purpose::kDropout, options_.rank, position.epoch)};
  backend_->BeginSection(kGradientSection);
  const Tensor prediction = model_->Forward(input_, pass);
  backend_->SquaredError(prediction, targets_, output_gradient_, loss_);
  model_->Backward(output_gradient_, pass);
  backend_->EndSection();
  const float loss = Loss();
  backend_->CopyOut(prediction, predictions_.data());
  RETURN_IF_ERROR(Reduce(reduce));
  parameters_.Forget();
  velocity_.Forget();
  backend_->BeginSection(kUpdateSection);
  if (AveragesOnDevice()) rank_average()->Average(model_->flat_gradients());
  optimizer_.Step(learning_rate);
  backend_->EndSection();
  if (!std::isfinite(loss))
    return absl::OutOfRangeError(absl::StrCat("loss is ", loss, " in epoch ", position.epoch,
                                              ", step ", position.step,
                                              "; lower the learning rate or check the data"));
  return loss;
}

bool Trainable::AveragesOnDevice() const {
  const RankAverage* const average = backend_->rank_average();
  return average != nullptr && average->has_joined();
}

absl::Status Trainable::Reduce(ReduceGradients reduce) {
  if (AveragesOnDevice() || (options_.is_alone && !backend_->is_host_memory()))
    return absl::OkStatus();
  RETURN_IF_ERROR(reduce(gradients_.Pull(model_->flat_gradients())));
  gradients_.Push();
  return absl::OkStatus();
}

// Of the current batch, with the L2 term; waits for the work before it.
float Trainable::Loss() {
  float loss = 0;
  backend_->CopyOut(loss_, &loss);
  for (const Parameter* parameter : model_->parameters()) {
    if (parameter->l2 == 0) continue;
    float squares = 0;
    backend_->SumOfSquares(parameter->value, square_sum_);
    backend_->CopyOut(square_sum_, &squares);
    loss += static_cast<float>(parameter->l2 * double{squares});
  }
  return loss;
}

absl::StatusOr<double> Trainable::EvalBatch(const Batch& batch) {
  CopyIn(batch);
  backend_->BeginSection(kEvaluationSection);
  const Tensor prediction = model_->Forward(input_, {.is_training = false});
  backend_->EndSection();
  backend_->CopyOut(prediction, predictions_.data());
  double sum = 0;
  for (size_t i = 0; i < batch.targets.size(); ++i)
    sum += std::abs(double{predictions_[i]} - double{batch.targets[i]});
  if (!std::isfinite(sum))
    return absl::OutOfRangeError("a prediction or target of the evaluation is not finite");
  return sum;
}

std::span<const float> Trainable::predictions() const {
  return predictions_;
}

int64_t Trainable::batch_size() const {
  return model_->input()[0];
}

int64_t Trainable::voxels_per_sample() const {
  return model_->input().elements() / batch_size();
}

int64_t Trainable::outputs() const {
  return model_->output().elements() / batch_size();
}

std::span<float> Trainable::parameters() {
  return parameters_.Pull(model_->flat_parameters());
}

std::span<float> Trainable::velocity() {
  return velocity_.Pull(optimizer_.velocity());
}

void Trainable::ParametersChanged() {
  parameters_.Push();
  velocity_.Push();
  model_->ParametersChanged();
}

}  // namespace assay
