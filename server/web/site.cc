#include "server/web/site.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/web/answer.h"
#include "server/web/live.h"
#include "server/web/router.h"

namespace assay::web {
namespace {

constexpr absl::string_view kSignInPath = "/signin";
constexpr absl::string_view kSignOutPath = "/signout";

HttpResponse Busy() {
  HttpResponse response = PlainResponse(503, "the site is busy: try again in a second");
  response.headers.push_back({"Retry-After", "1"});
  return response;
}

HttpResponse WrongMethod(absl::string_view allowed) {
  HttpResponse response = PlainResponse(405, absl::StrCat("this takes ", allowed));
  response.headers.push_back({"Allow", std::string(allowed)});
  return response;
}

Endpoint WithToken(Endpoint endpoint, const std::string& token) {
  endpoint.token = token;
  return endpoint;
}

bool IsEventStream(const HttpRequest& http) {
  return absl::StrContains(http.Header("Accept"), "text/event-stream");
}

// Whether something at `path` takes POST; `route` is its page, or null.
bool TakesPost(absl::string_view path, const Route* route) {
  return path == kSignInPath || path == kSignOutPath || (route != nullptr && route->takes_post);
}

}  // namespace

Site::Site(SiteOptions options, const Clock* clock)
    : options_(std::move(options)),
      clock_(clock),
      public_(WithToken(options_.coordinator, options_.public_token), clock),
      sessions_(clock),
      sign_in_(options_.coordinator, &public_, &sessions_, &forms_, clock),
      streams_(options_.streams_max),
      pool_(options_.page_threads, options_.page_queue_max),
      gateway_(options_.coordinator, &public_, &pool_, &streams_, clock) {}

void Site::Handle(std::shared_ptr<Exchange> exchange) {
  const HttpRequest& request = exchange->request();
  if (IsMethodPath(request.target)) return gateway_.Handle(exchange);
  const bool is_read = request.method == "GET" || request.method == "HEAD";
  if (!is_read && request.method != "POST") return exchange->Send(WrongMethod("GET, HEAD, POST"));
  if (absl::StartsWith(request.target, "/static/"))
    return exchange->Send(is_read ? AssetResponse(request) : WrongMethod("GET, HEAD"));
  if (!pool_.Add([this, exchange] { Serve(exchange); })) exchange->Send(Busy());
}

void Site::Serve(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& http = exchange->request();
  absl::StatusOr<Request> request = ParseRequest(http);
  if (!request.ok())
    return exchange->Send(PlainResponse(400, std::string(request.status().message())));
  Match match = FindRoute(options_.routes, request->path);
  if (request->method == "POST" && !TakesPost(request->path, match.route))
    return exchange->Send(WrongMethod("GET, HEAD"));
  request->parameters = std::move(match.parameters);
  Visit visit = VisitOf(http, *std::move(request));
  const std::optional<std::string> run = LiveRun(visit.request);
  if (run.has_value() && visit.request.format.empty() && IsEventStream(http) &&
      OpenStream(exchange, visit, *run))
    return;
  SendResult(exchange.get(), &visit, Answer(&visit));
}

Site::Visit Site::VisitOf(const HttpRequest& http, Request request) {
  Visit visit{.http = http, .request = std::move(request), .visitor = {.role = "public"}};
  const std::string id = CookieValue(http.Header("Cookie"), kSessionCookie);
  const std::shared_ptr<const Session> session = id.empty() ? nullptr : sessions_.Find(id);
  if (session == nullptr) return visit;
  visit.visitor = session->visitor;
  visit.visitor.form_token = forms_.Make(id);
  visit.session_id = id;
  visit.account = session->account;
  return visit;
}

absl::StatusOr<std::shared_ptr<const client::Client>> Site::ClientOf(const Visit& visit) {
  return visit.account != nullptr ? visit.account->Client() : public_.Client();
}

absl::Status Site::CheckPost(const Visit& visit) const {
  const absl::string_view origin = visit.http.Header("Origin");
  if (origin != options_.origin) {
    return absl::PermissionDeniedError(absl::StrCat("the request comes from \"", origin,
                                                    "\", not from a page of ", options_.origin,
                                                    ": open the site under that address"));
  }
  if (visit.request.path == kSignInPath) return absl::OkStatus();  // which has a cookie of its own
  if (visit.session_id.empty())
    return absl::UnauthenticatedError("who changes something signs in first");
  if (!forms_.Check(visit.session_id, visit.request.form.First("form_token"))) {
    return absl::PermissionDeniedError(
        "the form is not of a page that this session was shown: load the page again");
  }
  return absl::OkStatus();
}

bool Site::OpenStream(const std::shared_ptr<Exchange>& exchange, const Visit& visit,
                      const std::string& run) {
  absl::StatusOr<RpcStreamOptions> options = LiveStream(run, visit.http, visit.request);
  const absl::StatusOr<std::shared_ptr<const client::Client>> client = ClientOf(visit);
  if (!options.ok() || !client.ok()) return false;
  options->client = *client;
  if (!streams_.Start(*std::move(options), exchange)) exchange->Send(Busy());
  return true;
}

absl::StatusOr<Response> Site::Answer(Visit* visit) {
  const Request& request = visit->request;
  const bool is_post = request.method == "POST";
  if (is_post) RETURN_IF_ERROR(CheckPost(*visit));
  if (request.path == kSignInPath && request.format.empty()) {
    if (is_post) return sign_in_.Enter(visit->http, request);
    return sign_in_.Page(visit->http, request, visit->visitor);
  }
  if (request.path == kSignOutPath && request.format.empty() && is_post)
    return sign_in_.Leave(visit->session_id);
  return AnswerPage(visit);
}

absl::StatusOr<Response> Site::AnswerPage(Visit* visit) {
  const Request& request = visit->request;
  PageFunction page = nullptr;
  if (const Route* const route = FindRoute(options_.routes, request.path).route; route != nullptr)
    page = route->page;
  if (LiveRun(request).has_value() && request.format == "json") page = LiveEvents;
  if (page == nullptr) return absl::NotFoundError(absl::StrCat("there is no page ", request.path));
  ASSIGN_OR_RETURN(const std::shared_ptr<const client::Client> client, ClientOf(*visit));
  return page(
      {.client = *client, .visitor = visit->visitor, .now = clock_->Wall(), .courses = courses_},
      request);
}

void Site::SendResult(Exchange* exchange, Visit* visit, absl::StatusOr<Response> response) {
  const bool is_over = absl::IsUnauthenticated(response.status()) && !visit->session_id.empty();
  if (is_over) {
    // The coordinator knows the token no more: it was revoked, or has ended.
    sessions_.Close(visit->session_id);
    visit->visitor = {.role = "public"};
  }
  if (!response.ok()) {
    response = ErrorResponse(visit->visitor, response.status(), visit->request.format == "json");
    if (is_over) response->headers.push_back(SignIn::ClearedCookie());
  }
  exchange->Send(ToHttp(visit->http, visit->visitor, *std::move(response)));
}

void Site::Stop() {
  pool_.Stop();
  gateway_.Stop();
  streams_.Stop();
}

}  // namespace assay::web
