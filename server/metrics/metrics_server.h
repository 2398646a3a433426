// The port of the figures: /metrics for Prometheus, /healthz and /readyz for what supervises
// daemons.

#ifndef SERVER_METRICS_METRICS_SERVER_H_
#define SERVER_METRICS_METRICS_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/pki.h"
#include "server/metrics/figures.h"
#include "server/web/http_server.h"

namespace assay::metrics {

// True for addresses that only this machine reaches: 127.0.0.1:9464, localhost:9464, [::1]:9464.
bool IsLoopback(absl::string_view address);

struct MetricsAddress {
  std::string listen_address;  // host:port; port 0: any that is free
  // May hold a chain. Empty: plain HTTP, for loopback alone.
  CertificateAndKey certificate;
};

// What one request for `target` by `method` is answered with.
web::HttpResponse Answer(const Figures& figures, absl::string_view method,
                         absl::string_view target);

// Serves on a thread of its own until it is destroyed, which waits for the answer under way.
class MetricsServer final : private web::HttpHandler {
 public:
  // `figures` must be open, and outlive this. INVALID_ARGUMENT for an address or certificate that
  // cannot be; UNAVAILABLE if the port is taken.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const MetricsAddress& address,
                                                              const Figures* figures);
  ~MetricsServer() override;

  std::string address() const { return server_->address(); }

 private:
  explicit MetricsServer(const Figures* figures) : figures_(*figures) {}
  void Handle(std::shared_ptr<web::Exchange> exchange) override;

  const Figures& figures_;
  std::unique_ptr<web::HttpServer> server_;
};

}  // namespace assay::metrics

#endif  // SERVER_METRICS_METRICS_SERVER_H_
