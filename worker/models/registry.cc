#include "worker/models/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/status.h"
#include "worker/engine/objective.h"

namespace assay {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;

// Velocity or two moments, and the sums of several batches.
MemoryLimit LimitOf(const ModelSpec& spec) {
  const TrainableOptions& options = spec.options;
  const int moments = options.optimizer.kind == OptimizerOptions::Kind::kSgd ? 1 : 2;
  return {.bytes = spec.memory_limit_bytes,
          .parameter_copies = moments + (options.accumulation > 1 ? 1 : 0)};
}

// For training, or if there is `trained`, for evaluating that.
absl::StatusOr<ModelParts> MakeCosmoflowParts(const ModelSpec& spec, Backend* backend,
                                              const Model* trained) {
  CosmoflowSpec cosmoflow = spec.cosmoflow;
  if (trained != nullptr) cosmoflow.batch = spec.eval_batch;
  ModelParts parts;
  ASSIGN_OR_RETURN(parts.model,
                   MakeCosmoflow(cosmoflow, backend, spec.group, trained, LimitOf(spec)));
  parts.objective = std::make_unique<SquaredErrorObjective>(backend, parts.model->output());
  return parts;
}

absl::StatusOr<ModelParts> MakeDeepcamParts(const ModelSpec& spec, Backend* backend,
                                            const Model* trained) {
  DeepcamSpec deepcam = spec.deepcam;
  if (trained != nullptr && spec.eval_batch != 0) deepcam.batch = spec.eval_batch;
  ModelParts parts;
  ASSIGN_OR_RETURN(parts.model, MakeDeepcam(deepcam, backend, trained, LimitOf(spec)));
  parts.objective = std::make_unique<SegmentationObjective>(backend, parts.model->output(),
                                                            DeepcamClassWeights());
  return parts;
}

// What was recomputed makes room for training; an evaluation that does not find its own there takes
// more.
absl::Status CheckLimit(const ModelSpec& spec, const ModelParts& training,
                        const ModelParts& evaluation) {
  if (spec.memory_limit_bytes == 0 || evaluation.model == nullptr) return absl::OkStatus();
  const Model& model = *evaluation.model;
  auto more = static_cast<int64_t>(model.activation_bytes());
  if (model.input()[0] != training.model->input()[0])
    more += model.input().elements() * static_cast<int64_t>(SizeOf(model.input_type()));
  const int64_t needed = static_cast<int64_t>(training.model->training_bytes()) + more;
  if (needed <= spec.memory_limit_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(spec.memory_limit_bytes / kMib,
                   " MiB are too little for training and evaluation: the latter, in batches of ",
                   model.input()[0], ", takes ", (more + kMib - 1) / kMib, " MiB more; allow ",
                   (needed + kMib - 1) / kMib, " MiB, or evaluate in smaller batches"));
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
    RETURN_IF_ERROR(CheckLimit(spec, training, evaluation));
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
