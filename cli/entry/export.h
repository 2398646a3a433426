// assay entry export: an entry as the package that MLPerf asks for.

#ifndef CLI_ENTRY_EXPORT_H_
#define CLI_ENTRY_EXPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "assay/v1/resources.pb.h"

#include "cli/command/command.h"
#include "common/client/client.h"

namespace assay::cli {

std::vector<Command> ExportCommands();

// Makes `folder`, which must not exist, with the source of the entry's program; nothing where it
// brought none. Errors as DownloadArtifact's and UnpackSource's.
absl::Status FetchSource(const client::Client& client, const v1::Submission& entry,
                         const std::string& folder);

}  // namespace assay::cli

#endif  // CLI_ENTRY_EXPORT_H_
