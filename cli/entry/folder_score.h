// assay score DIR: published results judged and scored offline, beside what the official tools say
// of them.

#ifndef CLI_ENTRY_FOLDER_SCORE_H_
#define CLI_ENTRY_FOLDER_SCORE_H_

#include <string>

#include "absl/status/statusor.h"

#include "cli/command/command.h"
#include "cli/command/context.h"

namespace assay::cli {

// Scores everything below `directory` and prints it. kFailed if something has no score.
absl::StatusOr<ExitStatus> ScoreFolders(Context* context, const std::string& round,
                                        const std::string& directory);

}  // namespace assay::cli

#endif  // CLI_ENTRY_FOLDER_SCORE_H_
