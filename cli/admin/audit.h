// assay admin audit: who changed what, who was refused, and when.

#ifndef CLI_ADMIN_AUDIT_H_
#define CLI_ADMIN_AUDIT_H_

#include <vector>

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> AuditCommands();

}  // namespace assay::cli

#endif  // CLI_ADMIN_AUDIT_H_
