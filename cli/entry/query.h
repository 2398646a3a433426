// assay query: entries by a filter.

#ifndef CLI_ENTRY_QUERY_H_
#define CLI_ENTRY_QUERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "cli/command/command.h"
#include "common/client/client.h"

namespace assay::cli {

// Up to `limit` entries that match the filter whose terms these are, newest first. INVALID_ARGUMENT
// if it is none; else the coordinator's error.
absl::StatusOr<std::vector<v1::Submission>> QueryEntries(const client::Client& client,
                                                         std::vector<std::string> terms,
                                                         int64_t limit);

// The positional FILTER, with its help.
Positional FilterPositional();

std::vector<Command> QueryCommands();

}  // namespace assay::cli

#endif  // CLI_ENTRY_QUERY_H_
