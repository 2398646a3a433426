#include "server/metrics/metrics_server.h"

#include <arpa/inet.h>
#include <prometheus/text_serializer.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"

namespace assay::metrics {
namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
// Version 0.0.4 of Prometheus' text format, which OpenMetrics' readers take too.
constexpr char kExposition[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr absl::Duration kShutdownGrace = absl::Seconds(1);

web::HttpResponse Text(int status, std::string body, const char* type = kText) {
  return {.status = status,
          .headers = {{"Content-Type", type}, {"Cache-Control", "no-store"}},
          .body = std::move(body)};
}

}  // namespace

bool IsLoopback(absl::string_view address) {
  const absl::string_view host = address.substr(0, address.rfind(':'));
  in_addr address_v4 = {};
  const bool is_127 = absl::StartsWith(host, "127.") &&
                      inet_pton(AF_INET, std::string(host).c_str(), &address_v4) == 1;
  return is_127 || host == "localhost" || host == "[::1]" || host == "::1";
}

web::HttpResponse Answer(const Figures& figures, absl::string_view method,
                         absl::string_view target) {
  if (method != "GET" && method != "HEAD") {
    web::HttpResponse refusal = Text(405, "only GET and HEAD are answered here\n");
    refusal.headers.push_back({"Allow", "GET, HEAD"});
    return refusal;
  }
  const absl::string_view path = target.substr(0, target.find('?'));
  if (path == "/metrics")
    return Text(200, prometheus::TextSerializer().Serialize(figures.Collect()), kExposition);
  if (path == "/healthz") return Text(200, "ok\n");
  if (path == "/readyz") {
    const absl::Status status = figures.Readiness();
    if (status.ok()) return Text(200, "ready\n");
    return Text(503, absl::StrCat("not ready: ", status.message(), "\n"));
  }
  if (path == "/")
    return Text(200, "assayd: /metrics for Prometheus, /healthz and /readyz for probes\n");
  return Text(404, "there is /metrics, /healthz and /readyz\n");
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const MetricsAddress& address,
                                                                    const Figures* figures) {
  std::unique_ptr<MetricsServer> server(new MetricsServer(figures));
  const bool is_plain = address.certificate.key_pem.empty();
  if (is_plain && !IsLoopback(address.listen_address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address.listen_address,
                     "\" is not loopback: plain HTTP is for this machine alone, others need tls"));
  }
  ASSIGN_OR_RETURN(server->server_,
                   web::HttpServer::Start({.listen_address = address.listen_address,
                                           .is_plain = is_plain,
                                           .certificate = address.certificate,
                                           .limits = {.connections_max = 64}},
                                          server.get()));
  return server;
}

MetricsServer::~MetricsServer() {
  if (server_ != nullptr) server_->Shutdown(kShutdownGrace);
}

void MetricsServer::Handle(std::shared_ptr<web::Exchange> exchange) {
  // On the port's own thread: nobody else waits for a scrape.
  const web::HttpRequest& request = exchange->request();
  exchange->Send(Answer(figures_, request.method, request.target));
}

}  // namespace assay::metrics
