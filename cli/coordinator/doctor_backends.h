// What the trainer beside this program can compute with.

#ifndef CLI_COORDINATOR_DOCTOR_BACKENDS_H_
#define CLI_COORDINATOR_DOCTOR_BACKENDS_H_

#include <vector>

#include "absl/strings/string_view.h"

#include "cli/coordinator/check.h"
#include "cli/terminal/environment.h"

namespace assay::cli {

// Asks assay-train; nothing where there is none. Takes seconds where there is a GPU.
void CheckBackends(const Environment& env, std::vector<Check>* checks);

// What to say of the trainer's answer (assay-train --backends, both outputs). Backends of a GPU are
// missed only if the machine has one.
Check JudgeBackends(absl::string_view answer, bool has_gpu);

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_DOCTOR_BACKENDS_H_
