#include "server/web/connect_error.h"

#include "nlohmann/json.hpp"

namespace assay::web {
namespace {

struct CodeRow {
  absl::StatusCode code;
  const char* name;
  int http_status;
};

constexpr CodeRow kCodes[] = {
    {absl::StatusCode::kOk, "ok", 200},
    {absl::StatusCode::kCancelled, "canceled", 499},
    {absl::StatusCode::kUnknown, "unknown", 500},
    {absl::StatusCode::kInvalidArgument, "invalid_argument", 400},
    {absl::StatusCode::kDeadlineExceeded, "deadline_exceeded", 504},
    {absl::StatusCode::kNotFound, "not_found", 404},
    {absl::StatusCode::kAlreadyExists, "already_exists", 409},
    {absl::StatusCode::kPermissionDenied, "permission_denied", 403},
    {absl::StatusCode::kResourceExhausted, "resource_exhausted", 429},
    {absl::StatusCode::kFailedPrecondition, "failed_precondition", 400},
    {absl::StatusCode::kAborted, "aborted", 409},
    {absl::StatusCode::kOutOfRange, "out_of_range", 400},
    {absl::StatusCode::kUnimplemented, "unimplemented", 501},
    {absl::StatusCode::kInternal, "internal", 500},
    {absl::StatusCode::kUnavailable, "unavailable", 503},
    {absl::StatusCode::kDataLoss, "data_loss", 500},
    {absl::StatusCode::kUnauthenticated, "unauthenticated", 401},
};

const CodeRow& RowOf(absl::StatusCode code) {
  for (const CodeRow& row : kCodes)
    if (row.code == code) return row;
  return kCodes[2];
}

}  // namespace

absl::string_view ConnectCode(absl::StatusCode code) {
  return RowOf(code).name;
}

int ConnectHttpStatus(absl::StatusCode code) {
  return RowOf(code).http_status;
}

std::string ConnectErrorJson(const absl::Status& status) {
  nlohmann::ordered_json error;
  error["code"] = RowOf(status.code()).name;
  error["message"] = std::string(status.message());
  // What is not UTF-8 in a message becomes U+FFFD: an error must not fail to be said.
  return error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace assay::web
