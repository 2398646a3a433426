// assay score DIR: published results judged and scored offline, beside what the official tools say
// of them.

#ifndef CLI_ENTRY_FOLDER_SCORE_H_
#define CLI_ENTRY_FOLDER_SCORE_H_

#include <string>

#include "absl/status/statusor.h"

#include "cli/command/command.h"
#include "cli/command/context.h"
#include "cli/terminal/print.h"
#include "common/package/set_score.h"

namespace assay::cli {

// A folder of result files with its score and runs, as JSON, assay.folder_score/v2. Members named
// as in the stored official scores (org, official_pass1_min, rcp, ...) have the same meaning and
// rounding as there; the others are ours.
Json FolderScoreJson(const package::SetScore& set);

// Scores everything below `directory` and prints it. kFailed if something has no score.
absl::StatusOr<ExitStatus> ScoreFolders(Context* context, const std::string& round,
                                        const std::string& directory);

}  // namespace assay::cli

#endif  // CLI_ENTRY_FOLDER_SCORE_H_
