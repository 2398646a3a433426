// What happens in a run, as it happens: events for the browser's EventSource, or asked for again
// and again. The script of it is assets/live.js.

#ifndef SERVER_WEB_LIVE_H_
#define SERVER_WEB_LIVE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/web/http.h"
#include "server/web/page.h"
#include "server/web/rpc_stream.h"

namespace assay::web {

// The run of a path /runs/r-7/live, with or without .json: "r-7"; nullopt for other paths.
std::optional<std::string> LiveRun(const Request& request);

// The stream of rank 0's events of `run` after the number that the browser has seen last: the
// header Last-Event-ID, else the query's `after`, else 0. Each event's id is its number; the event
// "end" is the last if the run is over, or can not be shown, with the reason. A stream that ends
// without one is for the browser to open again. INVALID_ARGUMENT for a number that is none. Without
// the client.
absl::StatusOr<RpcStreamOptions> LiveStream(const std::string& run, const HttpRequest& http,
                                            const Request& request);

// The same for who polls: {"events":[...],"ended":false}, at most kPollEventsMax of them.
inline constexpr int kPollEventsMax = 500;
absl::StatusOr<Response> LiveEvents(const Context& context, const Request& request);

}  // namespace assay::web

#endif  // SERVER_WEB_LIVE_H_
