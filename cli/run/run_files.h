// assay run files: what a run left behind, listed, printed or saved.

#ifndef CLI_RUN_RUN_FILES_H_
#define CLI_RUN_RUN_FILES_H_

#include "cli/command/command.h"

namespace assay::cli {

Command RunFilesCommand();

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_FILES_H_
