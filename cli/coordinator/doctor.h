// assay doctor: whether this host and its connection are fit for runs that count.

#ifndef CLI_COORDINATOR_DOCTOR_H_
#define CLI_COORDINATOR_DOCTOR_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> DoctorCommands();

}  // namespace assay::cli

#endif  // CLI_COORDINATOR_DOCTOR_H_
