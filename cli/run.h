// assay run, assay logs: single runs, their logs and events.

#ifndef CLI_RUN_H_
#define CLI_RUN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "cli/client.h"
#include "cli/command.h"

namespace assay::cli {

// The run that `id` means: r-901 or @last.
absl::StatusOr<v1::Run> GetRun(const Client& client, const std::string& id);

std::vector<Command> RunCommands();
std::vector<Command> LogsCommands();

}  // namespace assay::cli

#endif  // CLI_RUN_H_
