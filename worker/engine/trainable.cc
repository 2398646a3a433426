#include "worker/engine/trainable.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/random.h"
#include "common/status.h"
#include "worker/engine/async_copier.h"

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
                                                           ModelParts training,
                                                           ModelParts evaluation,
                                                           const TrainableOptions& options) {
  std::unique_ptr<Trainable> trainable(
      new Trainable(std::move(backend), std::move(training), std::move(evaluation), options));
  RETURN_IF_ERROR(trainable->Commit());
  trainable->training_.model->Initialize(options.seed);
  return trainable;
}

Trainable::Trainable(std::unique_ptr<Backend> backend, ModelParts training, ModelParts evaluation,
                     const TrainableOptions& options)
    : backend_(std::move(backend)),
      training_{std::move(training), {}, {}, {}, {}},
      evaluation_{std::move(evaluation), {}, {}, {}, {}},
      options_(options),
      buffers_(backend_.get(), kBufferAlignment),
      accumulator_(backend_.get(), training_.model.get(), options.accumulation),
      reducer_(backend_.get(), training_.model.get(), options.accumulation == 1, options.reduction),
      parameters_(backend_.get()),
      optimizer_state_(backend_.get()),
      layer_buffers_(backend_.get()) {
  CHECK(backend_->real() == DType::kFloat32);
  if (options.checks_numbers) numbers_ = std::make_unique<NumberCheck>(backend_.get());
}

absl::Status Trainable::Commit() {
  ASSIGN_OR_RETURN(optimizer_,
                   MakeOptimizer(options_.optimizer, backend_.get(), training_.model.get()));
  RETURN_IF_ERROR(Annotate(optimizer_->Commit(), "optimizer state"));
  RETURN_IF_ERROR(accumulator_.Plan(&buffers_));
  buffers_.Reserve(Shape{1}, DType::kFloat32, &loss_);
  buffers_.Reserve(Shape{1}, DType::kFloat32, &square_sum_);
  RETURN_IF_ERROR(Reserve(&training_));
  if (evaluation_.model != nullptr) RETURN_IF_ERROR(Reserve(&evaluation_));
  RETURN_IF_ERROR(Annotate(buffers_.Commit(), "input buffers"));
  if (evaluation_.model != nullptr && evaluation_.batch() == training_.batch()) {
    evaluation_.input = training_.input;
    evaluation_.targets = training_.targets;
    evaluation_.output_gradient = training_.output_gradient;
  }
  training_.objective->Start();
  if (evaluation_.model != nullptr) evaluation_.objective->Start();
  return MakeFeeds();
}

absl::Status Trainable::MakeFeeds() {
  ASSIGN_OR_RETURN(train_feed_,
                   BatchFeed::Make(backend_.get(), training_.input, training_.targets));
  ASSIGN_OR_RETURN(eval_feed_,
                   BatchFeed::Make(backend_.get(), evaluation().input, evaluation().targets));
  return absl::OkStatus();
}

absl::Status Trainable::ReserveCache(int64_t samples) {
  CHECK(cache_ == nullptr && samples > 0) << "samples=" << samples;
  if (backend_->is_host_memory())
    return absl::InvalidArgumentError(
        absl::StrCat("backend ", backend_->name(),
                     " computes in the host's memory and keeps no samples of its own; choose one "
                     "with a device, or no cache"));
  ASSIGN_OR_RETURN(cache_,
                   SampleCache::Make(backend_.get(), training_.input, training_.targets, samples));
  train_feed_->set_cache(cache_.get());
  eval_feed_->set_cache(cache_.get());
  return absl::OkStatus();
}

std::shared_ptr<void> Trainable::Pin(std::span<std::byte> host) {
  AsyncCopier* const copies = backend_->async_copier();
  return copies == nullptr ? nullptr : copies->Pin(host);
}

// An evaluation in batches of training's size takes training's tensors.
absl::Status Trainable::Reserve(Lane* lane) {
  const Shape output = lane->model->output();
  if (lane == &training_ || lane->batch() != training_.batch()) {
    const Objective& objective = *lane->objective;
    buffers_.Reserve(lane->model->input(), lane->model->input_type(), &lane->input);
    buffers_.Reserve(objective.target_shape(), objective.target_type(), &lane->targets);
    buffers_.Reserve(output, DType::kFloat32, &lane->output_gradient);
  }
  return lane->objective->Plan(&buffers_);
}

int64_t Trainable::SamplesOf(const Batch& batch) const {
  return std::ssize(batch.targets) / BytesPerSample(training_.targets);
}

// Does what copies batches, and measures it.
void Trainable::Copying(absl::FunctionRef<void()> copy) {
  const MonoTime begin = clock_ == nullptr ? MonoTime() : clock_->Mono();
  copy();
  if (clock_ != nullptr) input_copy_time_ += clock_->Mono() - begin;
}

// When the work on a batch was issued and is not yet waited for.
void Trainable::AwaitAndStage(BatchFeed* feed, const Batch* next) {
  Copying([feed, next] {
    feed->Await();
    if (next != nullptr) feed->Prefetch(*next);
  });
}

absl::StatusOr<float> Trainable::TrainStep(const Batch& batch, const StepPosition& position,
                                           double learning_rate, ReduceGradients reduce,
                                           const Batch* next) {
  CHECK(SamplesOf(batch) == batch_size()) << "a short batch in training";
  Copying([&] { train_feed_->Take(batch); });
  const Pass pass = {
      .is_training = true,
      .step = position.step,
      .dropout = Stream(options_.seed, Purpose::kDropout, options_.rank, position.epoch),
      .group = group_,
      .watch = numbers_.get()};
  backend_->BeginSection(kGradientSection);
  training_.prediction = training_.model->Forward(training_.input, pass);
  training_.objective->Loss(training_.prediction, training_.targets, training_.output_gradient,
                            loss_);
  reducer_.Backward(training_.output_gradient, pass);
  backend_->EndSection();
  AwaitAndStage(train_feed_.get(), next);
  const float loss = Loss();
  last_ = &training_;
  if (accumulator_.Add()) {
    RETURN_IF_ERROR(reducer_.ReduceOnHost(reduce));
    parameters_.Forget();
    optimizer_state_.Forget();
    backend_->BeginSection(kUpdateSection);
    reducer_.ReduceOnDevice();
    optimizer_->Step(learning_rate);
    is_evaluation_old_ = true;
    backend_->EndSection();
  }
  const std::string where = absl::StrCat(" in epoch ", position.epoch, ", step ", position.step);
  RETURN_IF_ERROR(CheckNumbers(
      std::isfinite(loss)
          ? ""
          : absl::StrCat("loss is ", loss, where, "; lower the learning rate or check the data"),
      where));
  return loss;
}

// OUT_OF_RANGE if there is a `complaint`, or a number was not finite, which is named then.
absl::Status Trainable::CheckNumbers(const std::string& complaint, const std::string& where) {
  const std::string finding = numbers_ == nullptr ? "" : numbers_->TakeFinding();
  if (complaint.empty() && finding.empty()) return absl::OkStatus();
  if (finding.empty()) return absl::OutOfRangeError(complaint);
  if (complaint.empty())
    return absl::OutOfRangeError(absl::StrCat("not all numbers are finite", where, ": ", finding));
  return absl::OutOfRangeError(absl::StrCat(complaint, "; first, ", finding));
}

// Of the current batch, with the L2 term; waits for the work before it.
float Trainable::Loss() {
  float loss = 0;
  backend_->CopyOut(loss_, &loss);
  for (const Parameter* parameter : model().parameters()) {
    if (parameter->l2 == 0) continue;
    float squares = 0;
    backend_->SumOfSquares(parameter->value, square_sum_);
    backend_->CopyOut(square_sum_, &squares);
    loss += static_cast<float>(parameter->l2 * double{squares});
  }
  return loss;
}

absl::StatusOr<EvalSums> Trainable::EvalBatch(const Batch& batch, const Batch* next) {
  Lane& lane = evaluation_.model == nullptr ? training_ : evaluation_;
  if (evaluation_.model != nullptr && std::exchange(is_evaluation_old_, false))
    evaluation_.model->ParametersChanged();
  const int64_t samples = SamplesOf(batch);
  Copying([&] { eval_feed_->Take(batch); });
  training_.prediction = {};
  backend_->BeginSection(kEvaluationSection);
  lane.prediction =
      lane.model->Forward(lane.input, {.is_training = false, .watch = numbers_.get()});
  backend_->EndSection();
  AwaitAndStage(eval_feed_.get(), next);
  last_ = &lane;
  const auto first = [samples](const Tensor& tensor) {
    return Tensor{tensor.data, tensor.shape.WithFirst(samples), tensor.dtype};
  };
  lane.objective->Loss(first(lane.prediction), first(lane.targets), first(lane.output_gradient),
                       loss_);
  float loss = 0;
  backend_->CopyOut(loss_, &loss);
  EvalSums sums = {.loss = static_cast<double>(samples) * double{loss}};
  ASSIGN_OR_RETURN(sums.quality,
                   lane.objective->QualitySum(lane.prediction, lane.targets, samples));
  RETURN_IF_ERROR(
      CheckNumbers(std::isfinite(loss) ? "" : "a prediction of the evaluation is not finite",
                   " in an evaluation"));
  return sums;
}

absl::StatusOr<double> Trainable::TrainQuality() {
  CHECK(training_.prediction.data != nullptr) << "no step, or an evaluation since";
  ASSIGN_OR_RETURN(const double sum, training_.objective->QualitySum(
                                         training_.prediction, training_.targets, batch_size()));
  return sum / static_cast<double>(batch_size() * terms_per_sample());
}

SampleWork Trainable::work() const {
  const auto samples = static_cast<double>(batch_size());
  const LayerFlops flops = model().flops();
  const LayerTraffic bytes = model().traffic_bytes();
  // A step reads the gradients, and reads and writes the parameters and each moment.
  const int64_t moments = optimizer_->state().elements() / model().parameter_count();
  const int64_t trained = model().parameter_count() - model().frozen_elements();
  const auto step_bytes =
      static_cast<double>((3 + 2 * moments) * trained * static_cast<int64_t>(sizeof(float)));
  return {.train_flops = (flops.forward + flops.backward) / samples,
          .eval_flops = flops.forward / samples,
          .train_bytes = (bytes.forward + bytes.backward + step_bytes / accumulation()) / samples,
          .eval_bytes = bytes.forward / samples};
}

std::span<const float> Trainable::predictions() {
  CHECK(last_->prediction.data != nullptr) << "no step and no evaluation yet";
  predictions_.resize(static_cast<size_t>(last_->prediction.elements()));
  backend_->CopyOut(last_->prediction, predictions_.data());
  return predictions_;
}

int64_t Trainable::input_elements() const {
  return model().input().elements() / batch_size();
}

int64_t Trainable::outputs() const {
  return model().output().elements() / batch_size();
}

std::span<float> Trainable::parameters() {
  return parameters_.Pull(model().flat_parameters());
}

std::span<float> Trainable::optimizer_state() {
  return optimizer_state_.Pull(optimizer_->state());
}

void Trainable::ParametersChanged() {
  parameters_.Push();
  optimizer_state_.Push();
  training_.model->ParametersChanged();
  is_evaluation_old_ = true;
}

void Trainable::BuffersChanged() {
  layer_buffers_.Push();
}

std::span<float> Trainable::buffers() {
  if (model().buffer_elements() == 0) return {};
  return layer_buffers_.Pull(model().flat_buffers());
}

}  // namespace assay
