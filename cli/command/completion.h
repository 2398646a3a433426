// Shell completion and man pages, generated from the command table.

#ifndef CLI_COMMAND_COMPLETION_H_
#define CLI_COMMAND_COMPLETION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "cli/command/command.h"

namespace assay::cli {

// A script for `shell`: "bash", "zsh" or "fish"; "" for any other.
std::string CompletionScript(absl::string_view shell);

// A man page (section 1, groff man macros) of `assay` as a whole ("") or of one command.
std::string ManPage(absl::string_view path);

std::vector<Command> CompletionCommands();

}  // namespace assay::cli

#endif  // CLI_COMMAND_COMPLETION_H_
