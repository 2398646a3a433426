// How the coordinator speaks TLS.
//
// What a client offers by ALPN decides what is asked of it: who speaks HTTP/2 alone, as gRPC does,
// must show a certificate of our CA before the handshake ends; everybody else gets HTTP/1.1 and is
// asked for nothing. TLS 1.3 only; no resumption, so that every connection shows its
// certificate anew.

#ifndef SERVER_GATE_TLS_CONTEXT_H_
#define SERVER_GATE_TLS_CONTEXT_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "common/openssl_ptr.h"
#include "common/pki.h"
#include "server/gate/stream.h"

namespace assay::gate {

// Thread-safe once made.
class TlsContext {
 public:
  // INVALID_ARGUMENT if a text is not what it should be. `server` may hold a chain.
  static absl::StatusOr<TlsContext> Make(const CertificateAndKey& server,
                                         const std::string& ca_pem);

  // One connection's state; null if out of memory.
  SslPtr NewConnection() const { return SslPtr(SSL_new(context_.get())); }

 private:
  using ContextPtr = std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>>;
  explicit TlsContext(ContextPtr context) : context_(std::move(context)) {}

  ContextPtr context_;
};

// True if the client speaks HTTP/2 over `ssl`, whose handshake is done: it has shown a certificate.
bool IsHttp2(const SSL* ssl);

}  // namespace assay::gate

#endif  // SERVER_GATE_TLS_CONTEXT_H_
