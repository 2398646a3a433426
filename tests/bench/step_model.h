// A model beside one batch of random samples in host memory: what benchmarks of its steps drive.

#ifndef TESTS_BENCH_STEP_MODEL_H_
#define TESTS_BENCH_STEP_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "tests/worker/engine/make_batch.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"

namespace assay {

// Not thread-safe.
class StepModel {
 public:
  // The model of `spec`, alone on its backend; samples are drawn from a fixed stream.
  // NOT_FOUND, INVALID_ARGUMENT, RESOURCE_EXHAUSTED as MakeBackend and MakeTrainable.
  static absl::StatusOr<std::unique_ptr<StepModel>> Make(const ModelSpec& spec,
                                                         const std::string& backend,
                                                         const BackendOptions& options = {});

  // The input copied in (on a device: taken over, because it was prefetched during the step
  // before), both passes, the optimizer, the loss read back. Errors of TrainStep.
  absl::Status Train();
  // The input copied in, forward, the quality. Errors of EvalBatch.
  absl::Status Evaluate();

  // Of the last Train.
  float loss() const { return loss_; }
  const Model& model() const { return model_->model(); }

 private:
  StepModel(const ModelSpec& spec, std::unique_ptr<Trainable> model);
  void Draw(const ModelSpec& spec);
  Batch batch() const { return MakeBatch(input_, targets_); }

  const std::unique_ptr<Trainable> model_;
  std::vector<std::byte> input_, targets_;
  std::array<std::shared_ptr<void>, 2> pins_;  // of both
  uint64_t step_ = 0;
  float loss_ = 0;
};

}  // namespace assay

#endif  // TESTS_BENCH_STEP_MODEL_H_
