// HTTP/1.1 over TLS, or plain: one thread that does all input and output, and never waits for
// anybody.
//
// A client holds what these limits say, and nobody else's time: one request at a time, of which it
// may send the next before it has the answer to the last (those bytes wait in the kernel).

#ifndef SERVER_WEB_HTTP_SERVER_H_
#define SERVER_WEB_HTTP_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/pki.h"
#include "server/web/http.h"

namespace assay::web {

struct HttpLimits {
  uint32_t header_bytes_max = 16 << 10;
  uint64_t body_bytes_max = 1 << 20;
  int connections_max = 2048;
  int connections_per_address_max = 64;
  absl::Duration handshake = absl::Seconds(10);
  // From the connection's last answer to the end of the next request's header.
  absl::Duration idle = absl::Seconds(60);
  absl::Duration body = absl::Seconds(30);
  // A client that takes none of a response for so long is gone.
  absl::Duration stall = absl::Seconds(30);
  absl::Duration heartbeat = absl::Seconds(15);  // of an open response
};

struct HttpServerOptions {
  std::string listen_address;     // host:port; port 0: any that is free
  bool is_plain = false;          // without TLS: for loopback
  CertificateAndKey certificate;  // may hold a chain; unless it is plain
  HttpLimits limits;
};

// For figures and tests.
struct HttpCounts {
  int64_t connections = 0;          // now
  int64_t open_responses = 0;       // now
  int64_t requests = 0;             // since the start
  int64_t refused_connections = 0;  // over a limit
};

class HttpServer {
 public:
  // Listens and serves on a thread of its own. `handler` must outlive it. INVALID_ARGUMENT for an
  // address or certificate that cannot be; UNAVAILABLE if the port is taken.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options,
                                                           HttpHandler* handler);
  virtual ~HttpServer() = default;

  // host:port
  virtual std::string address() const = 0;
  virtual HttpCounts counts() const = 0;

  // What connections are greeted with from now on; those that are there stay as they are.
  // INVALID_ARGUMENT for a certificate or key that is unusable: then nothing changes.
  virtual absl::Status Renew(const CertificateAndKey& certificate) = 0;

  // Takes no more connections, closes those that wait for nothing, lets open responses end (Gone)
  // and waits up to `grace` for answers that are on their way. Blocks; afterwards the handler is
  // not called. Idempotent.
  virtual void Shutdown(absl::Duration grace) = 0;
};

}  // namespace assay::web

#endif  // SERVER_WEB_HTTP_SERVER_H_
