// What moves a model's parameters along their gradients.

#ifndef WORKER_ENGINE_OPTIMIZER_H_
#define WORKER_ENGINE_OPTIMIZER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/engine/adaptive.h"
#include "worker/engine/arena.h"
#include "worker/engine/backend.h"
#include "worker/engine/model.h"

namespace assay {

// Not thread-safe. The backend and the model must outlive it.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Allocates the state, zeroed. RESOURCE_EXHAUSTED: no memory.
  virtual absl::Status Commit() = 0;
  // One step from the model's gradients, which it may overwrite; tells the model that its
  // parameters changed. Leaves frozen parameters and what it remembers of them alone.
  virtual void Step(double learning_rate) = 0;
  // Everything it remembers in numbers, laid out as Model::flat_parameters(), once per moment.
  virtual Tensor state() const = 0;
  // How many steps that state has behind it, where it was not made here. SGD does not care.
  virtual void set_steps_done(int64_t) {}
};

struct OptimizerOptions {
  enum class Kind { kSgd, kAdam, kAdamW, kLamb };

  Kind kind = Kind::kSgd;
  double momentum = 0.9;  // of SGD; the others:
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;
  double max_grad_norm = 1;  // of LAMB: longer gradients are scaled down to it
};

// "SGD", "Adam", "AdamW", "LAMB".
absl::string_view OptimizerName(OptimizerOptions::Kind kind);
// In any case of letters. INVALID_ARGUMENT for any other text, listing the names.
absl::StatusOr<OptimizerOptions::Kind> ParseOptimizer(absl::string_view name);

// INVALID_ARGUMENT: the backend lacks the operations (Backend::adaptive).
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerOptions& options,
                                                         Backend* backend, Model* model);

// SGD with momentum as Keras has it, over all parameters of a model.
//
// v <- momentum * v - lr * (g + 2 * l2 * w);  w <- w + v. The learning rate is inside the velocity,
// so changing it acts differently from PyTorch's SGD (CosmoFlow reference, tf.keras SGD).
class SgdOptimizer : public Optimizer {
 public:
  SgdOptimizer(Backend* backend, Model* model, double momentum);

  absl::Status Commit() override;
  void Step(double learning_rate) override;
  Tensor state() const override { return velocity_; }

 private:
  Backend* const backend_;
  Model* const model_;
  const double momentum_;
  Arena state_;
  Tensor velocity_;
};

// Adam, AdamW and LAMB (adaptive.h). Weight decay acts on all parameters, biases included.
//
// LAMB is APEX's FusedLAMB with bias correction, gradient averaging and `use_nvlamb` off: gradients
// are divided by max(1, norm over all parameters not frozen / max_grad_norm); each tensor then
// moves by lr * |p| / |u| * u, where a zero length, or no weight decay at all, makes the ratio 1.
class AdaptiveOptimizer : public Optimizer {
 public:
  // `options.kind` is not kSgd; `backend->adaptive()` is there.
  AdaptiveOptimizer(const OptimizerOptions& options, Backend* backend, Model* model);

  absl::Status Commit() override;
  void Step(double learning_rate) override;
  Tensor state() const override { return state_.Flat(backend_->real()); }
  void set_steps_done(int64_t steps) override { step_ = steps; }

 private:
  const OptimizerOptions options_;
  Backend* const backend_;
  Model* const model_;
  Arena state_;
  Tensor m_, v_;  // as Model::flat_parameters()
  int64_t step_ = 0;
};

}  // namespace assay

#endif  // WORKER_ENGINE_OPTIMIZER_H_
