// Reading entries and runs: one by its id, and lists over as many pages as they take. Everything
// blocks and fails as Client::Call does; nothing is cached. Thread-safe.

#ifndef COMMON_CLIENT_PAGES_H_
#define COMMON_CLIENT_PAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/client/client.h"

namespace assay::client {

// Up to `limit` entries that match `request`, newest first, over as many pages as it takes.
absl::StatusOr<std::vector<v1::Submission>> ListEntries(const Client& client,
                                                        v1::ListSubmissionsRequest request,
                                                        int64_t limit);

// Up to `limit` runs of an entry ("submissions/e-42"), in order; of all entries if it is "".
// `state` as people write it ("running"), or "" for any.
absl::StatusOr<std::vector<v1::Run>> ListRunsOf(const Client& client, const std::string& entry,
                                                const std::string& state, int64_t limit);

// All runs of an entry, in order.
absl::StatusOr<std::vector<v1::Run>> AllRunsOf(const Client& client, const std::string& entry);

// The entry that `id` names, and the run: as EntryName and RunName read it (ids.h), with their
// errors. NOT_FOUND if there is none.
absl::StatusOr<v1::Submission> GetEntry(const Client& client, const std::string& id);
absl::StatusOr<v1::Run> GetRun(const Client& client, const std::string& id);

// An entry and its runs as they were when they were read.
struct EntryView {
  v1::Submission entry;
  std::vector<v1::Run> runs;
};

// The entry "submissions/e-42" with all its runs; while the coordinator is away it is tried again.
absl::StatusOr<EntryView> ReadEntry(const Client& client, const std::string& name);

}  // namespace assay::client

#endif  // COMMON_CLIENT_PAGES_H_
