// assay wait: an entry followed to its end.

#ifndef CLI_ENTRY_FOLLOW_H_
#define CLI_ENTRY_FOLLOW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "cli/command/command.h"
#include "cli/command/context.h"
#include "common/client/client.h"

namespace assay::cli {

// Follows an entry to its end, with a line for each run, and prints the score. kDone if the entry
// is valid, kFailed if not, kTimedOut, or kInterrupted: the runs go on.
absl::StatusOr<ExitStatus> WaitForEntry(Context* context, const client::Client& client,
                                        const std::string& name, absl::Duration timeout);

std::vector<Command> WaitCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_FOLLOW_H_
