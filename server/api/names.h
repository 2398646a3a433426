// Names of the API's resources (AIP-122), from and to the core's ids. What is no name is
// INVALID_ARGUMENT and says what one looks like.

#ifndef SERVER_API_NAMES_H_
#define SERVER_API_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/core/id.h"

namespace assay::api {

// The id in "submissions/e-42", "runs/r-901", "tokens/t-7", "allocations/a-1".
absl::StatusOr<core::SubmissionId> ParseSubmissionName(absl::string_view name);
absl::StatusOr<core::RunId> ParseRunName(absl::string_view name);
absl::StatusOr<core::TokenId> ParseTokenName(absl::string_view name);
absl::StatusOr<core::AllocationId> ParseAllocationName(absl::string_view name);
// w0 in "workers/w0", cosmo32 in "datasets/cosmo32".
absl::StatusOr<std::string> ParseWorkerName(absl::string_view name);
absl::StatusOr<std::string> ParseDatasetName(absl::string_view name);

std::string NameOf(core::SubmissionId id);
std::string NameOf(core::RunId id);
std::string NameOf(core::TokenId id);
std::string NameOf(core::AllocationId id);
std::string WorkerName(absl::string_view worker);
std::string DatasetName(absl::string_view dataset);

// A text from outside, cut short and safe to show in a message.
std::string Shown(absl::string_view text);

}  // namespace assay::api

#endif  // SERVER_API_NAMES_H_
