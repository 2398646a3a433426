// `entry publish`: an entry that anybody may see.

#ifndef CLI_ENTRY_PUBLISH_H_
#define CLI_ENTRY_PUBLISH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "cli/command/command.h"

namespace assay::cli {

std::vector<Command> PublishCommands();

// A day (2020-11-18: its first moment, UTC) or a moment (RFC 3339: 2020-11-18T17:00:00Z). `option`
// is named in the error, INVALID_ARGUMENT, also for what is not after 1970.
absl::StatusOr<absl::Time> ParseMoment(const std::string& option, const std::string& text);

}  // namespace assay::cli

#endif  // CLI_ENTRY_PUBLISH_H_
