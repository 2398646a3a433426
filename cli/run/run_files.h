// assay run files: what a run left behind, listed, printed or saved.

#ifndef CLI_RUN_RUN_FILES_H_
#define CLI_RUN_RUN_FILES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "cli/command/command.h"

namespace assay::cli {

// `path`: "run files", or "run artifacts", its other name.
Command RunFilesCommand(const std::string& path);

// logs --stderr: what the processes of the run `id` printed, of one rank or of all, each below its
// name where there are several. NOT_FOUND where nothing was kept, with what there is.
absl::StatusOr<ExitStatus> PrintOutputs(Context* context, const std::string& id,
                                        std::optional<int64_t> rank);

}  // namespace assay::cli

#endif  // CLI_RUN_RUN_FILES_H_
