// The site: requests of HTTP to pages, assets, streams and the coordinator's methods, each as its
// visitor.

#ifndef SERVER_WEB_SITE_H_
#define SERVER_WEB_SITE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"

#include "common/clock.h"
#include "common/rpc/endpoint.h"
#include "server/web/account.h"
#include "server/web/course_cache.h"
#include "server/web/gateway.h"
#include "server/web/http.h"
#include "server/web/page.h"
#include "server/web/rpc_stream.h"
#include "server/web/sessions.h"
#include "server/web/sign_in.h"
#include "server/web/work_pool.h"

namespace assay::web {

struct SiteOptions {
  Endpoint coordinator;      // its address and CA
  std::string public_token;  // of the public
  std::string origin;        // https://bench.example.org, under which browsers know the site
  std::span<const Route> routes;
  int page_threads = 8;
  size_t page_queue_max = 64;
  size_t streams_max = 1000;
};

// Thread-safe.
class Site final : public HttpHandler {
 public:
  // `clock` must outlive it.
  Site(SiteOptions options, const Clock* clock);

  void Handle(std::shared_ptr<Exchange> exchange) override;

  // Answers no more, and blocks until no thread holds a request. Only once the HTTP server has been
  // shut down. Idempotent.
  void Stop();

  size_t session_count() const { return sessions_.size(); }

 private:
  // A request whose visitor is known.
  struct Visit {
    const HttpRequest& http;
    Request request;
    Visitor visitor;
    std::string session_id;            // of the cookie; empty for the public
    std::shared_ptr<Account> account;  // null for the public
  };

  void Serve(const std::shared_ptr<Exchange>& exchange);
  Visit VisitOf(const HttpRequest& http, Request request);
  // OK if a POST comes from a page of this site: what SameSite alone does not say, because a cookie
  // is sent from all ports of a host.
  absl::Status CheckPost(const Visit& visit) const;
  // False if the response is a stream, and on its way.
  bool OpenStream(const std::shared_ptr<Exchange>& exchange, const Visit& visit,
                  const std::string& run);
  absl::StatusOr<Response> Answer(Visit* visit);
  absl::StatusOr<Response> AnswerPage(Visit* visit);
  // The client as whom `visit` asks.
  absl::StatusOr<std::shared_ptr<const client::Client>> ClientOf(const Visit& visit);
  void SendResult(Exchange* exchange, Visit* visit, absl::StatusOr<Response> response);

  const SiteOptions options_;
  const Clock* const clock_;
  CourseCache courses_;
  Account public_;
  Sessions sessions_;
  const FormTokens forms_;
  const SignIn sign_in_;
  RpcStreams streams_;
  WorkPool pool_;
  Gateway gateway_;
};

}  // namespace assay::web

#endif  // SERVER_WEB_SITE_H_
