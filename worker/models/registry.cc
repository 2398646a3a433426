#include "worker/models/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"

namespace assay {

absl::StatusOr<std::unique_ptr<Trainable>> MakeTrainable(const ModelSpec& spec,
                                                         std::unique_ptr<Backend> backend) {
  if (spec.name != "cosmoflow")
    return absl::NotFoundError(
        absl::StrCat("no model named \"", spec.name, "\"; there is: cosmoflow"));
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                   MakeCosmoflow(spec.cosmoflow, backend.get(), spec.group));
  return Trainable::Make(std::move(backend), std::move(model), spec.options);
}

}  // namespace assay
