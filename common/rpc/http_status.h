// How an absl::Status travels over HTTP, for the few things that are not asked over gRPC.

#ifndef COMMON_RPC_HTTP_STATUS_H_
#define COMMON_RPC_HTTP_STATUS_H_

#include <array>
#include <utility>

#include "absl/status/status.h"

namespace assay {

// Each code has a number of its own, so that it comes back as the same.
inline constexpr std::array<std::pair<absl::StatusCode, int>, 9> kHttpStatuses = {{
    {absl::StatusCode::kOk, 200},
    {absl::StatusCode::kInvalidArgument, 400},
    {absl::StatusCode::kUnauthenticated, 401},
    {absl::StatusCode::kPermissionDenied, 403},
    {absl::StatusCode::kNotFound, 404},
    {absl::StatusCode::kFailedPrecondition, 412},
    {absl::StatusCode::kResourceExhausted, 429},
    {absl::StatusCode::kInternal, 500},
    {absl::StatusCode::kUnavailable, 503},
}};

// 500 for a code that has no number.
inline int HttpStatusOf(absl::StatusCode code) {
  for (const auto& [known, number] : kHttpStatuses) {
    if (known == code) return number;
  }
  return 500;
}

// UNKNOWN for a number that is nobody's.
inline absl::StatusCode CodeOfHttp(int http_status) {
  for (const auto& [code, number] : kHttpStatuses) {
    if (number == http_status) return code;
  }
  return absl::StatusCode::kUnknown;
}

}  // namespace assay

#endif  // COMMON_RPC_HTTP_STATUS_H_
