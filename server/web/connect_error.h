// Errors as the Connect protocol says them in JSON (connectrpc.com/docs/protocol, "Error codes"):
// names, HTTP statuses, {"code","message"}.

#ifndef SERVER_WEB_CONNECT_ERROR_H_
#define SERVER_WEB_CONNECT_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace assay::web {

// "not_found" for NOT_FOUND; "ok" for OK, which is no error.
absl::string_view ConnectCode(absl::StatusCode code);

// 404 for NOT_FOUND; 500 where the protocol knows nothing better.
int ConnectHttpStatus(absl::StatusCode code);

// {"code":"not_found","message":"..."}
std::string ConnectErrorJson(const absl::Status& status);

}  // namespace assay::web

#endif  // SERVER_WEB_CONNECT_ERROR_H_
