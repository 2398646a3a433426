// Files that come with the programs: example rounds and submissions, sources of benchmarks.

#ifndef CLI_COMMAND_SHARE_H_
#define CLI_COMMAND_SHARE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "cli/terminal/environment.h"

namespace assay::cli {

// The directory `name` ("rounds", "quickstart", "bench"): in share/assay beside an installed bin/,
// or in the deploy/ of a source tree above a build. NOT_FOUND with the places looked at.
absl::StatusOr<std::string> ShareDirectory(const Environment& environment, absl::string_view name);

// Paths of the files in `directory` whose names end in `suffix`, sorted.
absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& directory,
                                                 absl::string_view suffix);

// The path of one of our programs: "assayd". NOT_FOUND if it does not lie beside this one.
absl::StatusOr<std::string> SiblingProgram(const Environment& environment, absl::string_view name);

}  // namespace assay::cli

#endif  // CLI_COMMAND_SHARE_H_
