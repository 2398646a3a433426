// assay prune: which good instances a throughput set does without.

#ifndef CLI_ENTRY_PRUNE_H_
#define CLI_ENTRY_PRUNE_H_

#include <vector>

#include "absl/status/status.h"

#include "assay/v1/resources.pb.h"

#include "cli/command/command.h"
#include "cli/command/context.h"

namespace assay::cli {

// A table of what the submitter may choose. FAILED_PRECONDITION if nothing can be chosen any more.
absl::Status PrintPrunings(Context* context, const v1::Submission& entry,
                           const std::vector<v1::Run>& runs);

std::vector<Command> PruneCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_PRUNE_H_
