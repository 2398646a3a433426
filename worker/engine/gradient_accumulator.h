// Adds up the gradients of several batches, whose mean one optimizer step takes.

#ifndef WORKER_ENGINE_GRADIENT_ACCUMULATOR_H_
#define WORKER_ENGINE_GRADIENT_ACCUMULATOR_H_

#include "absl/status/status.h"

#include "worker/engine/arena.h"
#include "worker/engine/backend.h"
#include "worker/engine/model.h"
#include "worker/engine/tensor.h"

namespace assay {

// Not thread-safe. The backend and the model must outlive it.
class GradientAccumulator {
 public:
  // `batches` before each step.
  GradientAccumulator(Backend* backend, const Model* model, int batches)
      : backend_(backend), model_(model), batches_(batches) {}

  // Reserves room for the sums; none for one batch. INVALID_ARGUMENT: `batches` is not positive, or
  // the backend cannot add gradients.
  absl::Status Plan(Arena* arena);
  // Adds the model's gradients to those before. True after the last batch before a step: then the
  // model's gradients are the mean.
  bool Add();

  int batches() const { return batches_; }

 private:
  Backend* const backend_;
  const Model* const model_;
  const int batches_;
  Tensor sums_;    // as Model::flat_gradients()
  int added_ = 0;  // since the last step
};

}  // namespace assay

#endif  // WORKER_ENGINE_GRADIENT_ACCUMULATOR_H_
