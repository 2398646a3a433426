// assay doctor: whether this host and its connection are fit for runs that count.

#ifndef CLI_COORDINATOR_DOCTOR_H_
#define CLI_COORDINATOR_DOCTOR_H_

#include <vector>

#include "cli/command/command.h"
#include "cli/command/context.h"
#include "cli/coordinator/check.h"

namespace assay::cli {

// All that `assay doctor` looks at, in the order in which it says it. Failures are findings.
std::vector<Check> Examine(Context* context);

std::vector<Command> DoctorCommands();

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_DOCTOR_H_
