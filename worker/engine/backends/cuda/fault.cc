#include "worker/engine/backends/cuda/fault.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"

#include "common/exit_code.h"
#include "common/log.h"

namespace assay::cuda {

absl::Status ToStatus(absl::string_view what, const Fault& fault) {
  const std::string message = absl::StrCat("cuda: ", what, ": ", fault.text);
  switch (fault.kind) {
    case FaultKind::kNone:
      return absl::OkStatus();
    case FaultKind::kAbsent:
      return absl::UnavailableError(message);
    case FaultKind::kOutOfMemory:
      return absl::ResourceExhaustedError(message);
    case FaultKind::kUnsupported:
      return absl::InvalidArgumentError(message);
    case FaultKind::kFailed:
      return absl::InternalError(message);
  }
  return absl::InternalError(message);
}

void Must(absl::string_view what, const Fault& fault) {
  if (fault.ok()) return;
  LOG(ERROR) << "backend=cuda status=" << Quoted(ToStatus(what, fault));
  std::_Exit(static_cast<int>(ExitCode::kBackend));
}

}  // namespace assay::cuda
