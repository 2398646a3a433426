// assay allocation join: the nodes of the submitter's own job.

#ifndef CLI_ALLOCATION_JOIN_H_
#define CLI_ALLOCATION_JOIN_H_

#include "cli/command/command.h"

namespace assay::cli {

Command JoinCommand();

}  // namespace assay::cli

#endif  // CLI_ALLOCATION_JOIN_H_
