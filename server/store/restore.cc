#include "server/store/restore.h"

#include <utility>
#include <variant>

#include "common/status.h"

namespace assay::store {

absl::Status RestoreFor(const core::Command& command, CoreStore* store, core::Core* core) {
  const std::optional<core::Core::Target> missing = core->Missing(command);
  if (!missing.has_value()) return absl::OkStatus();
  if (const auto* run_id = std::get_if<core::RunId>(&*missing); run_id != nullptr) {
    ASSIGN_OR_RETURN(core::Run run, store->LoadRun(*run_id));
    core->Restore(std::move(run));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(core::ClosedSubmission closed,
                   store->LoadClosed(std::get<core::SubmissionId>(*missing)));
  core->Restore(std::move(closed));
  return absl::OkStatus();
}

}  // namespace assay::store
