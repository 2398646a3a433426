// SGD with momentum as Keras has it, over all parameters of a model.

#ifndef WORKER_ENGINE_OPTIMIZER_H_
#define WORKER_ENGINE_OPTIMIZER_H_

#include "absl/status/status.h"

#include "worker/engine/arena.h"
#include "worker/engine/backend.h"
#include "worker/engine/model.h"

namespace assay {

// Not thread-safe. `backend` and `model` must outlive it.
//
// v <- momentum * v - lr * (g + 2 * l2 * w);  w <- w + v. The learning rate is inside the velocity,
// so changing it acts differently from PyTorch's SGD (CosmoFlow reference, tf.keras SGD).
class SgdOptimizer {
 public:
  SgdOptimizer(Backend* backend, Model* model, double momentum);

  // Allocates the velocity, zeroed. RESOURCE_EXHAUSTED: no memory.
  absl::Status Commit();
  // One step from the model's gradients; tells the model that its parameters changed.
  void Step(double learning_rate);

  // Laid out as Model::flat_parameters().
  Tensor velocity() const { return velocity_; }

 private:
  Backend* const backend_;
  Model* const model_;
  const double momentum_;
  Arena state_;
  Tensor velocity_;
};

}  // namespace assay

#endif  // WORKER_ENGINE_OPTIMIZER_H_
