// Which page a request is for, and what its parts say.

#ifndef SERVER_WEB_ROUTER_H_
#define SERVER_WEB_ROUTER_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/web/http.h"
#include "server/web/page.h"

namespace assay::web {

// At most so many names in a query or a form: more is nobody's question.
inline constexpr size_t kFieldsMax = 200;

// `text` with %XX as the bytes that they stand for and, in forms and queries, "+" as a space.
// INVALID_ARGUMENT for a "%" without two digits.
absl::StatusOr<std::string> DecodeUrl(absl::string_view text, bool is_plus_space);

// a=1&b=2, application/x-www-form-urlencoded. INVALID_ARGUMENT for what is not, or has more than
// kFieldsMax names.
absl::StatusOr<Fields> ParseFields(absl::string_view text);

// The parts of `http`, without the parameters of a route. INVALID_ARGUMENT if they cannot be
// decoded, or a path has empty or dotted segments; the form of a POST is read if its type is that
// of forms.
absl::StatusOr<Request> ParseRequest(const HttpRequest& http);

struct Match {
  const Route* route = nullptr;  // null if there is no page
  Fields parameters;
};

// The first of `routes` whose pattern fits `path`, which is decoded: so a segment may hold any
// character but "/".
Match FindRoute(std::span<const Route> routes, absl::string_view path);

}  // namespace assay::web

#endif  // SERVER_WEB_ROUTER_H_
