// The table of models that this build can train.

#ifndef WORKER_MODELS_REGISTRY_H_
#define WORKER_MODELS_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "worker/engine/backend.h"
#include "worker/engine/trainable.h"
#include "worker/models/cosmoflow.h"
#include "worker/models/deepcam.h"

namespace assay {

struct ModelSpec {
  std::string name = "cosmoflow";
  CosmoflowSpec cosmoflow;   // read if the name is "cosmoflow"
  DeepcamSpec deepcam;       // read if the name is "deepcam"
  TrainableOptions options;  // seed, rank, optimizer
  int64_t eval_batch = 0;    // samples of a batch in evaluation; 0: as in training
  // What training may take of the backend's memory, as Model::training_bytes() counts it, together
  // with what evaluation takes beside it; reached by recomputing. 0: as much as it takes.
  int64_t memory_limit_bytes = 0;
  // The ranks that share this one's samples; null: none do. Must outlive the model. Its members
  // have equal `options.rank`: they must drop out the same.
  SpatialGroup* group = nullptr;
};

// A model with its initial weights, ready to train on `backend` (engine/backends/registry.h).
// NOT_FOUND: no such model. INVALID_ARGUMENT: a bad spec. RESOURCE_EXHAUSTED: not enough memory, or
// the limit is too low; the message names the least one.
absl::StatusOr<std::unique_ptr<Trainable>> MakeTrainable(const ModelSpec& spec,
                                                         std::unique_ptr<Backend> backend);

}  // namespace assay

#endif  // WORKER_MODELS_REGISTRY_H_
