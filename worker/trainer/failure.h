// A failure that knows how the process should end.

#ifndef WORKER_TRAINER_FAILURE_H_
#define WORKER_TRAINER_FAILURE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/exit_code.h"

namespace assay {

// `status` with `code` attached, unless it is OK or has a code already: the innermost cause
// decides. UNAUTHENTICATED, which only worker/comm says, means kIntruder whatever `code` is.
absl::Status WithExitCode(absl::Status status, ExitCode code);

template <typename T>
absl::StatusOr<T> WithExitCode(absl::StatusOr<T> result, ExitCode code) {
  if (result.ok()) return result;
  return WithExitCode(result.status(), code);
}

// The code attached to `status`; kOk for OK, kInternal where none was attached.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace assay

#endif  // WORKER_TRAINER_FAILURE_H_
