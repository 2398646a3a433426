// A model with everything that training it takes: input buffers, objective, optimizer, gradients in
// one flat range. The trainer's loop drives it; it knows no dataset and no schedule, and leaves
// what ranks do with each other's gradients to a GradientReducer.
//
//   std::unique_ptr<Trainable> model = *MakeTrainable(spec, *MakeBackend("onednn"));
//   Broadcast(model->parameters()); model->ParametersChanged();            // rank 0's weights
//   for each epoch, each step:
//     model->TrainStep(batch, {epoch, step}, LearningRateAt(schedule, epoch),
//                      [&](std::span<float> gradients) { return AllReduceMean(gradients); });
//   for each validation batch: sums += *model->EvalBatch(batch);
//   quality = sums.quality / (samples * model->terms_per_sample());
//
// Not thread-safe.

#ifndef WORKER_ENGINE_TRAINABLE_H_
#define WORKER_ENGINE_TRAINABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/clock.h"
#include "worker/engine/arena.h"
#include "worker/engine/backend.h"
#include "worker/engine/batch.h"
#include "worker/engine/batch_feed.h"
#include "worker/engine/gradient_accumulator.h"
#include "worker/engine/gradient_reducer.h"
#include "worker/engine/host_mirror.h"
#include "worker/engine/model.h"
#include "worker/engine/number_check.h"
#include "worker/engine/objective.h"
#include "worker/engine/optimizer.h"

namespace assay {

// A committed model and what it is trained for; both belong to one backend.
struct ModelParts {
  std::unique_ptr<Model> model;
  std::unique_ptr<Objective> objective;
};

// Where in the run a step is: addresses the random numbers of that step.
struct StepPosition {
  uint32_t epoch = 0;  // from 0
  uint64_t step = 0;   // from 0 within the epoch
};

struct TrainableOptions {
  uint64_t seed = 0;  // of initial weights (equal on all ranks) and dropout masks
  uint32_t rank = 0;  // tells the dropout masks of the ranks apart
  OptimizerOptions optimizer;
  int accumulation = 1;  // batches whose mean gradient one optimizer step takes
  ReducerOptions reduction;
  bool checks_numbers = false;  // of every layer: errors name the first that is not finite
};

// Sums over the samples of a batch, so that batches of any size add up.
struct EvalSums {
  double quality = 0;  // terms_per_sample() terms per sample
  double loss = 0;     // one term per sample; without the L2 term

  EvalSums& operator+=(const EvalSums& other) {
    quality += other.quality;
    loss += other.loss;
    return *this;
  }
};

// What one sample costs at least: arithmetic as LayerFlops counts it; bytes through memory as
// LayerTraffic does, in training with its share of the optimizer's step.
struct SampleWork {
  double train_flops = 0, eval_flops = 0;
  double train_bytes = 0, eval_bytes = 0;
};

class Trainable {
 public:
  // Takes over a committed model; draws the initial weights. `backend` computes in float32.
  // `evaluation`: the same layers for batches of another size, committed for evaluation
  // (Model::CommitForEvaluation); empty: evaluation has the batches of training.
  // RESOURCE_EXHAUSTED: no memory. INVALID_ARGUMENT: the backend lacks an operation.
  static absl::StatusOr<std::unique_ptr<Trainable>> Make(std::unique_ptr<Backend> backend,
                                                         ModelParts training, ModelParts evaluation,
                                                         const TrainableOptions& options);
  Trainable(const Trainable&) = delete;
  Trainable& operator=(const Trainable&) = delete;

  // Forward and backward; after every `accumulation` batches also `reduce` and one optimizer step.
  // Returns the local loss before the step: the objective's plus the L2 term. `batch` must be full.
  // The status of `reduce` if it fails (nothing was updated; the process should end).
  // OUT_OF_RANGE: the loss, or with `checks_numbers` any number, is not finite; reported after
  // `reduce`, so that no peer waits in vain.
  // `next`: what the next call will be given, if it is known already; a device takes it in while it
  // computes. It must stay as it is until that call returns. Null changes no result.
  absl::StatusOr<float> TrainStep(const Batch& batch, const StepPosition& position,
                                  double learning_rate, ReduceGradients reduce,
                                  const Batch* next = nullptr);

  // Of the layers up to `layer` (Model::FreezeThrough): their gradients are no longer computed nor
  // given to `reduce`, which gets the others' alone, and their parameters stay as they are.
  absl::Status FreezeThrough(absl::string_view layer) {
    return training_.model->FreezeThrough(layer);
  }

  // Quality and loss of up to eval_batch_size() samples, without dropout and with running
  // statistics. OUT_OF_RANGE: a prediction is not finite. `next`: as in TrainStep, of EvalBatch.
  absl::StatusOr<EvalSums> EvalBatch(const Batch& batch, const Batch* next = nullptr);

  // The objective's quality of the last TrainStep's predictions, divided by samples and terms.
  // Before the next EvalBatch. OUT_OF_RANGE as EvalBatch.
  absl::StatusOr<double> TrainQuality();

  // Predictions (b, outputs) of the last TrainStep or EvalBatch; copied when they are asked for,
  // and valid until the next of either.
  std::span<const float> predictions();

  int64_t batch_size() const { return training_.batch(); }
  int64_t eval_batch_size() const { return evaluation().batch(); }
  int64_t input_elements() const;  // numbers in one sample
  int64_t outputs() const;         // predictions per sample
  int accumulation() const { return accumulator_.batches(); }
  int64_t terms_per_sample() const { return training_.objective->terms_per_sample(); }

  // All parameters as one flat vector, in order of layers, without gaps; Model describes the parts.
  // Call ParametersChanged() after writing to it; valid until the next step. Together with the
  // optimizer's state (the same layout, once per moment) and the buffers they are the whole state
  // of training.
  std::span<float> parameters();
  std::span<float> optimizer_state();
  void ParametersChanged();
  // Where the optimizer's state was taken over: batches trained on before, a multiple of
  // accumulation().
  void set_batches_done(int64_t batches) { optimizer_->set_steps_done(batches / accumulation()); }
  // Waits for all work: then the ranges above hold its results.
  void Synchronize() { backend_->Synchronize(); }
  // What layers keep besides parameters, such as running statistics; empty if there is none.
  // Call BuffersChanged() after writing to it; valid until the next step.
  std::span<float> buffers();
  void BuffersChanged();
  // The ranks that normalise batches together; null: each by itself. `group` must outlive its use.
  void set_group(GroupMean* group) { group_ = group; }

  const Model& model() const { return *training_.model; }
  // As of now: frozen layers cost less.
  SampleWork work() const;
  // Of its backend.
  bool is_host_memory() const { return backend_->is_host_memory(); }
  EngineChoices engine_choices() const { return backend_->engine_choices(); }
  // From now on the time that batches take to get to the backend is measured; null: it is not.
  // `clock` must outlive its use.
  void set_clock(const Clock* clock) { clock_ = clock; }
  // Of all batches so far: what TrainStep and EvalBatch spent copying them in, starting copies and
  // waiting for those that were not there in time.
  absl::Duration input_copy_time() const { return input_copy_time_; }

  // From now on up to so many samples, of both kinds of batches, stay in the device's memory
  // (Batch::cache says which). Once. INVALID_ARGUMENT: the backend computes in the host's memory.
  // RESOURCE_EXHAUSTED: no memory.
  absl::Status ReserveCache(int64_t samples);
  // Samples so far that came out of it.
  int64_t cached_samples() const {
    return train_feed_->kept_samples() + eval_feed_->kept_samples();
  }
  // Makes copies of batches that lie in `host` cheaper (AsyncCopier::Pin); null where that is
  // nothing. The result must end before this and `host` do.
  std::shared_ptr<void> Pin(std::span<std::byte> host);

  // Once the ranks of its device() have joined, TrainStep takes the gradients' means there and does
  // not call `reduce`.
  const GradientReducer& reducer() const { return reducer_; }

 private:
  // A model with room for one batch.
  struct Lane : ModelParts {
    Tensor input;
    Tensor targets;
    Tensor output_gradient;  // (b, outputs)
    Tensor prediction;       // of the last pass

    int64_t batch() const { return model->input()[0]; }
  };

  Trainable(std::unique_ptr<Backend> backend, ModelParts training, ModelParts evaluation,
            const TrainableOptions& options);
  absl::Status Commit();
  absl::Status Reserve(Lane* lane);
  const Lane& evaluation() const { return evaluation_.model == nullptr ? training_ : evaluation_; }
  absl::Status MakeFeeds();
  int64_t SamplesOf(const Batch& batch) const;
  void Copying(absl::FunctionRef<void()> copy);
  absl::Status CheckNumbers(const std::string& complaint, const std::string& where);
  void AwaitAndStage(BatchFeed* feed, const Batch* next);
  float Loss();

  const std::unique_ptr<Backend> backend_;
  Lane training_;
  Lane evaluation_;                 // without model: that is `training_` too
  bool is_evaluation_old_ = true;   // its parameters changed
  const Lane* last_ = &training_;   // where the last predictions are
  std::vector<float> predictions_;  // of it, on the host, if they were asked for
  const TrainableOptions options_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<NumberCheck> numbers_;  // null: nothing is checked
  GroupMean* group_ = nullptr;
  const Clock* clock_ = nullptr;
  absl::Duration input_copy_time_;
  std::unique_ptr<SampleCache> cache_;
  std::unique_ptr<BatchFeed> train_feed_, eval_feed_;
  Arena buffers_;
  Tensor loss_;        // (1)
  Tensor square_sum_;  // (1)
  GradientAccumulator accumulator_;
  GradientReducer reducer_;
  HostMirror parameters_, optimizer_state_, layer_buffers_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_TRAINABLE_H_
