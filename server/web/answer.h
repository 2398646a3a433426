// From a page's response to what goes over the wire: headers of security and caching, compression,
// ETags, and errors as pages.

#ifndef SERVER_WEB_ANSWER_H_
#define SERVER_WEB_ANSWER_H_

#include "absl/status/status.h"

#include "server/web/http.h"
#include "server/web/page.h"

namespace assay::web {

// Adds what every answer has: a content policy that knows this site's own scripts, styles and
// images only, no sniffing, no referrer for others, no frames, HTTPS alone, no sharing with other
// origins.
void AddSecurityHeaders(HttpResponse* response);

// `response` for `request`: with an ETag if it is a page for the public, else not to be stored;
// compressed if the client takes that and it is worth it. 304 if the client has it already.
HttpResponse ToHttp(const HttpRequest& request, const Visitor& visitor, Response response);

// An error as a page, or as JSON where `is_json`. Its status is that of the Connect protocol.
Response ErrorResponse(const Visitor& visitor, const absl::Status& status, bool is_json);

// The asset named by `target`, "/static/app.css?v=...", compressed if the client takes that; 404.
HttpResponse AssetResponse(const HttpRequest& request);

// Plain text, one line, for what is refused before a page is looked for.
HttpResponse PlainResponse(int status, absl::string_view text);

}  // namespace assay::web

#endif  // SERVER_WEB_ANSWER_H_
