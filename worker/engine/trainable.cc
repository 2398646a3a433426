#include "worker/engine/trainable.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/random.h"
#include "common/status.h"
#include "worker/engine/adaptive.h"
#include "worker/engine/rank_average.h"

namespace assay {
namespace {

constexpr size_t kBufferAlignment = 64;

// Keys of the sections of work that repeat (Backend::BeginSection).
enum : int { kGradientSection, kUpdateSection, kEvaluationSection };

int64_t BytesPerSample(const Tensor& tensor) {
  return static_cast<int64_t>(tensor.bytes()) / tensor.shape[0];
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainable>> Trainable::Make(std::unique_ptr<Backend> backend,
                                                           std::unique_ptr<Model> model,
                                                           std::unique_ptr<Objective> objective,
                                                           const TrainableOptions& options) {
  std::unique_ptr<Trainable> trainable(
      new Trainable(std::move(backend), std::move(model), std::move(objective), options));
  RETURN_IF_ERROR(trainable->Commit());
  trainable->model_->Initialize(options.seed);
  return trainable;
}

Trainable::Trainable(std::unique_ptr<Backend> backend, std::unique_ptr<Model> model,
                     std::unique_ptr<Objective> objective, const TrainableOptions& options)
    : backend_(std::move(backend)),
      model_(std::move(model)),
      objective_(std::move(objective)),
      options_(options),
      buffers_(backend_.get(), kBufferAlignment),
      parameters_(backend_.get()),
      optimizer_state_(backend_.get()),
      gradients_(backend_.get()),
      layer_buffers_(backend_.get()) {
  CHECK(backend_->real() == DType::kFloat32);
}

absl::Status Trainable::Commit() {
  ASSIGN_OR_RETURN(optimizer_, MakeOptimizer(options_.optimizer, backend_.get(), model_.get()));
  RETURN_IF_ERROR(Annotate(optimizer_->Commit(), "optimizer state"));
  if (options_.accumulation < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("gradient accumulation must be at least 1, is ", options_.accumulation));
  if (options_.accumulation > 1) {
    if (backend_->adaptive() == nullptr)
      return absl::InvalidArgumentError(
          absl::StrCat("backend ", backend_->name(), " cannot accumulate gradients"));
    buffers_.Reserve(Shape{model_->parameter_count()}, DType::kFloat32, &accumulated_);
  }
  const Shape output = model_->output();
  buffers_.Reserve(model_->input(), model_->input_type(), &input_);
  buffers_.Reserve(objective_->target_shape(), objective_->target_type(), &targets_);
  buffers_.Reserve(output, DType::kFloat32, &output_gradient_);
  buffers_.Reserve(Shape{1}, DType::kFloat32, &loss_);
  buffers_.Reserve(Shape{1}, DType::kFloat32, &square_sum_);
  RETURN_IF_ERROR(objective_->Plan(&buffers_));
  predictions_.resize(static_cast<size_t>(output.elements()));
  RETURN_IF_ERROR(Annotate(buffers_.Commit(), "input buffers"));
  objective_->Start();
  return absl::OkStatus();
}

// Copies a batch in and returns its samples; those that a short batch lacks keep older values.
int64_t Trainable::CopyIn(const Batch& batch) {
  const int64_t samples = std::ssize(batch.targets) / BytesPerSample(targets_);
  CHECK(samples >= 1 && samples <= batch_size() &&
        std::ssize(batch.targets) == samples * BytesPerSample(targets_) &&
        std::ssize(batch.input) == samples * BytesPerSample(input_))
      << "target_bytes=" << batch.targets.size() << " input_bytes=" << batch.input.size()
      << " input=" << input_.shape.ToString();
  const MonoTime begin = clock_ == nullptr ? MonoTime() : clock_->Mono();
  backend_->CopyIn(batch.input.data(), FirstSamples(input_, samples));
  backend_->CopyIn(batch.targets.data(), FirstSamples(targets_, samples));
  if (clock_ != nullptr) input_copy_time_ += clock_->Mono() - begin;
  return samples;
}

// The first samples of a tensor that has the batch first, as one vector per sample.
Tensor Trainable::FirstSamples(const Tensor& tensor, int64_t samples) const {
  return {tensor.data, {samples, tensor.elements() / tensor.shape[0]}, tensor.dtype};
}

// Adds this batch's gradients to those before it; true if it is the last before a step, and then
// the model's gradients are the mean.
bool Trainable::Accumulate() {
  if (options_.accumulation == 1) return true;
  const bool is_first = accumulated_batches_ == 0;
  if (is_first) {
    backend_->Copy(model_->flat_gradients(), accumulated_);
  } else {
    backend_->adaptive()->AddScaled(1, model_->flat_gradients(), accumulated_);
  }
  if (++accumulated_batches_ < options_.accumulation) return false;
  accumulated_batches_ = 0;
  backend_->Copy(accumulated_, model_->flat_gradients());
  backend_->adaptive()->AddScaled(1.0 / options_.accumulation - 1, accumulated_,
                                  model_->flat_gradients());
  return true;
}

absl::StatusOr<float> Trainable::TrainStep(const Batch& batch, const StepPosition& position,
                                           double learning_rate, ReduceGradients reduce) {
  CHECK(CopyIn(batch) == batch_size()) << "a short batch in training";
  const Pass pass = {
      .is_training = true,
      .step = position.step,
      .dropout = Stream(options_.seed, Purpose::kDropout, options_.rank, position.epoch),
      .group = group_};
  backend_->BeginSection(kGradientSection);
  prediction_ = model_->Forward(input_, pass);
  objective_->Loss(prediction_, targets_, output_gradient_, loss_);
  model_->Backward(output_gradient_, pass);
  backend_->EndSection();
  const float loss = Loss();
  backend_->CopyOut(prediction_, predictions_.data());
  if (Accumulate()) {
    RETURN_IF_ERROR(Reduce(reduce));
    parameters_.Forget();
    optimizer_state_.Forget();
    backend_->BeginSection(kUpdateSection);
    if (AveragesOnDevice()) rank_average()->Average(model_->flat_gradients());
    optimizer_->Step(learning_rate);
    backend_->EndSection();
  }
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

absl::StatusOr<EvalSums> Trainable::EvalBatch(const Batch& batch) {
  const int64_t samples = CopyIn(batch);
  backend_->BeginSection(kEvaluationSection);
  prediction_ = model_->Forward(input_, {.is_training = false});
  backend_->EndSection();
  backend_->CopyOut(prediction_, predictions_.data());
  const auto first = [samples](const Tensor& tensor) {
    return Tensor{tensor.data, tensor.shape.WithFirst(samples), tensor.dtype};
  };
  objective_->Loss(first(prediction_), first(targets_), first(output_gradient_), loss_);
  float loss = 0;
  backend_->CopyOut(loss_, &loss);
  EvalSums sums = {.loss = static_cast<double>(samples) * double{loss}};
  ASSIGN_OR_RETURN(sums.quality, objective_->QualitySum(prediction_, batch.targets, samples));
  if (!std::isfinite(loss))
    return absl::OutOfRangeError("a prediction of the evaluation is not finite");
  return sums;
}

absl::StatusOr<double> Trainable::TrainQuality(const Batch& batch) {
  CHECK(prediction_.data != nullptr) << "before the first step";
  ASSIGN_OR_RETURN(const double sum,
                   objective_->QualitySum(prediction_, batch.targets, batch_size()));
  return sum / static_cast<double>(batch_size() * terms_per_sample());
}

std::span<const float> Trainable::predictions() const {
  return predictions_;
}

int64_t Trainable::batch_size() const {
  return model_->input()[0];
}

int64_t Trainable::input_elements() const {
  return model_->input().elements() / batch_size();
}

int64_t Trainable::outputs() const {
  return model_->output().elements() / batch_size();
}

std::span<float> Trainable::parameters() {
  return parameters_.Pull(model_->flat_parameters());
}

std::span<float> Trainable::optimizer_state() {
  return optimizer_state_.Pull(optimizer_->state());
}

void Trainable::ParametersChanged() {
  parameters_.Push();
  optimizer_state_.Push();
  model_->ParametersChanged();
}

void Trainable::BuffersChanged() {
  layer_buffers_.Push();
}

std::span<float> Trainable::buffers() {
  if (model_->buffer_elements() == 0) return {};
  return layer_buffers_.Pull(model_->flat_buffers());
}

}  // namespace assay
