// assay entry: entries.

#ifndef CLI_ENTRY_ENTRY_H_
#define CLI_ENTRY_ENTRY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"
#include "assay/v1/submission_service.pb.h"

#include "cli/command/command.h"
#include "cli/command/context.h"

namespace assay::cli {

// What a command has made of an entry: as JSON, or what was done in one sentence and a note of what
// may be done next.
absl::Status ShowChanged(Context* context, const v1::Submission& entry, const std::string& done,
                         const std::string& next);

// Options that choose entries, with --limit, and the request that they make.
std::vector<Option> FilterOptions();
v1::ListSubmissionsRequest RequestFrom(const Arguments& arguments);

// Lists entries, newest first, and says so if there are as many as `limit` allows.
absl::StatusOr<ExitStatus> PrintEntries(Context* context,
                                        const std::vector<v1::Submission>& entries, int64_t limit);

std::vector<Command> EntryCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_ENTRY_H_
