// assay entry export: an entry as the package that MLPerf asks for.

#ifndef CLI_EXPORT_H_
#define CLI_EXPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/resources.pb.h"

#include "cli/command.h"
#include "cli/print.h"
#include "common/client/client.h"

namespace assay::cli {

// The bytes of an artifact. DATA_LOSS if what arrived has not its digest.
absl::StatusOr<std::string> DownloadArtifact(const client::Client& client,
                                             const v1::ArtifactRef& artifact);

// `text` as one part of a path that every checker accepts: no slash, blank or leading dot.
std::string PathPart(absl::string_view text);

// systems/SYSTEM.json: what the node says of itself, under the entry's name, with every member that
// the rules demand (rules specification, section 4.2).
Json SystemJson(const v1::Submission& entry, const Json& node_description);

// The submission file that would make this entry again.
std::string SubmissionToml(const v1::Submission& entry);

std::vector<Command> ExportCommands();

}  // namespace assay::cli

#endif  // CLI_EXPORT_H_
