// assay run files: what a run left behind, listed, printed or saved.

#ifndef CLI_RUN_RUN_FILES_H_
#define CLI_RUN_RUN_FILES_H_

#include <string>

#include "cli/command/command.h"

namespace assay::cli {

// `path`: "run files", or "run artifacts", its other name.
Command RunFilesCommand(const std::string& path);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_FILES_H_
