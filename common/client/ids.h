// Ids as people write them: e-42, s-42, r-901, w0, @last.

#ifndef COMMON_CLIENT_IDS_H_
#define COMMON_CLIENT_IDS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/client/client.h"

namespace assay::client {

// "submissions/e-42" is "e-42": what follows the last slash.
std::string ShortId(absl::string_view name);

// The name of what `id` names in the audit: e-42, r-901, a-3 and t-7 tell their kind, what has a
// slash is a name already, and any other is a node's. "" of "".
std::string AuditObject(absl::string_view id);

// "submissions/e-42" for e-42, for its run set s-42 and for @last or "", the newest entry that the
// caller may see. INVALID_ARGUMENT if `id` is something else, NOT_FOUND if there is no last one.
absl::StatusOr<std::string> EntryName(const Client& client, absl::string_view id);

// "runs/r-901" for r-901 and for @last or "", the newest run of the newest entry that has begun, or
// its last one if none has.
absl::StatusOr<std::string> RunName(const Client& client, absl::string_view id);

// "workers/w0" for w0 or workers/w0. INVALID_ARGUMENT if it cannot be a name.
absl::StatusOr<std::string> WorkerName(absl::string_view id);

// "allocations/a-1" for a-1 or allocations/a-1. INVALID_ARGUMENT if it is something else.
absl::StatusOr<std::string> AllocationName(absl::string_view id);

// "datasets/cosmo32" for cosmo32 or datasets/cosmo32.
absl::StatusOr<std::string> DatasetName(absl::string_view id);

}  // namespace assay::client

#endif  // COMMON_CLIENT_IDS_H_
