#include "worker/models/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/status.h"
#include "worker/engine/objective.h"

namespace assay {
namespace {

// For training, or if there is `trained`, for evaluating that.
absl::StatusOr<ModelParts> MakeCosmoflowParts(const ModelSpec& spec, Backend* backend,
                                              const Model* trained) {
  CosmoflowSpec cosmoflow = spec.cosmoflow;
  if (trained != nullptr) cosmoflow.batch = spec.eval_batch;
  ModelParts parts;
  ASSIGN_OR_RETURN(parts.model, MakeCosmoflow(cosmoflow, backend, spec.group, trained));
  parts.objective = std::make_unique<SquaredErrorObjective>(backend, parts.model->output());
  return parts;
}

absl::StatusOr<ModelParts> MakeDeepcamParts(const ModelSpec& spec, Backend* backend,
                                            const Model* trained) {
  DeepcamSpec deepcam = spec.deepcam;
  if (trained != nullptr && spec.eval_batch != 0) deepcam.batch = spec.eval_batch;
  ModelParts parts;
  ASSIGN_OR_RETURN(parts.model, MakeDeepcam(deepcam, backend, trained));
  parts.objective = std::make_unique<SegmentationObjective>(backend, parts.model->output(),
                                                            DeepcamClassWeights());
  return parts;
}

struct Entry {
  absl::string_view name;
  absl::StatusOr<ModelParts> (*make)(const ModelSpec& spec, Backend* backend, const Model* trained);
  // Whether evaluation has a model of its own even in batches of training's size: it keeps less,
  // and what it needs stays in the processor's caches. A device would prepare its convolutions
  // twice.
  bool evaluates_apart;
};

constexpr Entry kModels[] = {
    {"cosmoflow", MakeCosmoflowParts, false},
    {"deepcam", MakeDeepcamParts, true},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Trainable>> MakeTrainable(const ModelSpec& spec,
                                                         std::unique_ptr<Backend> backend) {
  for (const Entry& entry : kModels) {
    if (entry.name != spec.name) continue;
    ASSIGN_OR_RETURN(ModelParts training, entry.make(spec, backend.get(), nullptr));
    ModelParts evaluation;
    const bool is_other_batch =
        spec.eval_batch != 0 && spec.eval_batch != training.model->input()[0];
    if ((entry.evaluates_apart && backend->is_host_memory()) || is_other_batch) {
      ASSIGN_OR_RETURN(evaluation, entry.make(spec, backend.get(), training.model.get()));
    }
    return Trainable::Make(std::move(backend), std::move(training), std::move(evaluation),
                           spec.options);
  }
  return absl::NotFoundError(absl::StrCat(
      "no model named \"", spec.name,
      "\"; there are: ", absl::StrJoin(kModels, ", ", [](std::string* out, const Entry& entry) {
        absl::StrAppend(out, entry.name);
      })));
}

}  // namespace assay
