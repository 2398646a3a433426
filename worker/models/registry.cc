#include "worker/models/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/status.h"
#include "worker/engine/objective.h"

namespace assay {
namespace {

// A model and what it is trained for; both belong to the backend.
struct Parts {
  std::unique_ptr<Model> model;
  std::unique_ptr<Objective> objective;
};

absl::StatusOr<Parts> MakeCosmoflowParts(const ModelSpec& spec, Backend* backend) {
  Parts parts;
  ASSIGN_OR_RETURN(parts.model, MakeCosmoflow(spec.cosmoflow, backend, spec.group));
  parts.objective = std::make_unique<SquaredErrorObjective>(backend, parts.model->output());
  return parts;
}

absl::StatusOr<Parts> MakeDeepcamParts(const ModelSpec& spec, Backend* backend) {
  Parts parts;
  ASSIGN_OR_RETURN(parts.model, MakeDeepcam(spec.deepcam, backend));
  parts.objective = std::make_unique<SegmentationObjective>(backend, parts.model->output(),
                                                            DeepcamClassWeights());
  return parts;
}

struct Entry {
  absl::string_view name;
  absl::StatusOr<Parts> (*make)(const ModelSpec& spec, Backend* backend);
};

constexpr Entry kModels[] = {
    {"cosmoflow", MakeCosmoflowParts},
    {"deepcam", MakeDeepcamParts},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Trainable>> MakeTrainable(const ModelSpec& spec,
                                                         std::unique_ptr<Backend> backend) {
  for (const Entry& entry : kModels) {
    if (entry.name != spec.name) continue;
    ASSIGN_OR_RETURN(Parts parts, entry.make(spec, backend.get()));
    return Trainable::Make(std::move(backend), std::move(parts.model), std::move(parts.objective),
                           spec.options);
  }
  return absl::NotFoundError(absl::StrCat(
      "no model named \"", spec.name,
      "\"; there are: ", absl::StrJoin(kModels, ", ", [](std::string* out, const Entry& entry) {
        absl::StrAppend(out, entry.name);
      })));
}

}  // namespace assay
