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
  if (spec.group != nullptr && !backend->is_host_memory())
    return absl::InvalidArgumentError(
        absl::StrCat("backend \"", backend->name(),
                     "\" cannot share a sample between ranks; choose \"onednn\""));
  ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                   MakeCosmoflow(spec.cosmoflow, backend.get(), spec.group));
  return Trainable::Make(std::move(backend), std::move(model), spec.options);
}

}  // namespace assay
