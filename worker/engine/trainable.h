// A model with everything that training it takes: input buffers, loss, optimizer, gradients in one
// flat range. The trainer's loop drives it; it knows no dataset, no collective and no schedule.
//
//   std::unique_ptr<Trainable> model = *MakeTrainable(spec, *MakeBackend("onednn"));
//   Broadcast(model->parameters()); model->ParametersChanged();            // rank 0's weights
//   for each epoch, each step:
//     model->TrainStep({voxels, targets}, {epoch, step}, LearningRateAt(schedule, epoch),
//                      [&](std::span<float> gradients) { return AllReduceMean(gradients); });
//   for each validation batch: sum += *model->EvalBatch({voxels, targets});
//   mae = sum / (samples * outputs);
//
// Not thread-safe.

#ifndef WORKER_ENGINE_TRAINABLE_H_
#define WORKER_ENGINE_TRAINABLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/engine/arena.h"
#include "worker/engine/backend.h"
#include "worker/engine/host_mirror.h"
#include "worker/engine/model.h"
#include "worker/engine/optimizer.h"

namespace assay {

// One local batch on the host, borrowed for the call.
struct Batch {
  std::span<const int16_t> voxels;  // (b, D, H, W, channels): raw counts, C fastest
  std::span<const float> targets;   // (b, outputs)
};

// Where in the run a step is: addresses the random numbers of that step.
struct StepPosition {
  uint32_t epoch = 0;  // from 0
  uint64_t step = 0;   // from 0 within the epoch
};

// Replaces the local gradients, in place, by their mean over all ranks.
using ReduceGradients = absl::FunctionRef<absl::Status(std::span<float> gradients)>;

struct TrainableOptions {
  uint64_t seed = 0;  // of initial weights (equal on all ranks) and dropout masks
  uint32_t rank = 0;  // tells the dropout masks of the ranks apart
  double momentum = 0.9;
  // The only rank: where gradients are not in the host's memory, `reduce` is not called and they
  // stay where they are.
  bool is_alone = false;
};

class Trainable {
 public:
  // Takes over a committed model whose input is int16 counts; draws the initial weights.
  // RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<Trainable>> Make(std::unique_ptr<Backend> backend,
                                                         std::unique_ptr<Model> model,
                                                         const TrainableOptions& options);
  Trainable(const Trainable&) = delete;
  Trainable& operator=(const Trainable&) = delete;

  // Forward, backward, `reduce`, one optimizer step. Returns the local loss before the step: mean
  // squared error plus the L2 term. `batch` must be full.
  // The status of `reduce` if it fails (nothing was updated; the process should end).
  // OUT_OF_RANGE: the loss is not finite; reported after `reduce`, so that no peer waits in vain.
  absl::StatusOr<float> TrainStep(const Batch& batch, const StepPosition& position,
                                  double learning_rate, ReduceGradients reduce);

  // Sum of |prediction - target| over samples and outputs, without dropout. Up to batch_size()
  // samples. OUT_OF_RANGE: a prediction is not finite.
  absl::StatusOr<double> EvalBatch(const Batch& batch);

  // Predictions (b, outputs) of the last TrainStep or EvalBatch.
  std::span<const float> predictions() const;

  int64_t batch_size() const;
  int64_t voxels_per_sample() const;  // D * H * W * channels
  int64_t outputs() const;            // targets per sample

  // All parameters as one flat vector, in order of layers, without gaps; Model describes the parts.
  // Call ParametersChanged() after writing to it; valid until the next step. Velocity has the same
  // layout; both together are the whole state of training.
  std::span<float> parameters();
  std::span<float> velocity();
  void ParametersChanged();
  // Waits for all work: then the ranges above hold its results.
  void Synchronize() { backend_->Synchronize(); }

  const Model& model() const { return *model_; }
  // The backend's own averages over ranks, or null. Once its ranks have joined, TrainStep takes the
  // gradients' means there and does not call `reduce`.
  RankAverage* rank_average() { return backend_->rank_average(); }

 private:
  Trainable(std::unique_ptr<Backend> backend, std::unique_ptr<Model> model,
            const TrainableOptions& options);
  absl::Status Commit();
  void CopyIn(const Batch& batch);
  float Loss();
  bool AveragesOnDevice() const;
  absl::Status Reduce(ReduceGradients reduce);

  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Model> model_;
  const TrainableOptions options_;
  SgdOptimizer optimizer_;
  Arena buffers_;
  Tensor input_;                    // int16 (b, D, H, W, channels)
  Tensor targets_;                  // (b, outputs)
  Tensor output_gradient_;          // (b, outputs)
  Tensor loss_;                     // (1)
  Tensor square_sum_;               // (1)
  std::vector<float> predictions_;  // (b, outputs), on the host
  HostMirror parameters_, velocity_, gradients_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_TRAINABLE_H_
