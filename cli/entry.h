// assay entry, assay set, assay query: entries and their run sets.

#ifndef CLI_ENTRY_H_
#define CLI_ENTRY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/submission_service.pb.h"

#include "cli/client.h"
#include "cli/command.h"

namespace assay::cli {

std::vector<Command> EntryCommands();
std::vector<Command> SetCommands();
std::vector<Command> QueryCommands();

// Up to `limit` entries that match `request`, newest first, over as many pages as it takes.
absl::StatusOr<std::vector<v1::Submission>> ListEntries(const Client& client,
                                                        v1::ListSubmissionsRequest request,
                                                        int64_t limit);

// All runs of an entry ("submissions/e-42"), in order; of all entries if it is "".
absl::StatusOr<std::vector<v1::Run>> ListRunsOf(const Client& client, const std::string& entry,
                                                const std::string& state, int64_t limit);

// All runs of an entry, in order.
absl::StatusOr<std::vector<v1::Run>> AllRunsOf(const Client& client, const std::string& entry);

// The entry that `id` names (see ids.h).
absl::StatusOr<v1::Submission> GetEntry(const Client& client, const std::string& id);

}  // namespace assay::cli

#endif  // CLI_ENTRY_H_
