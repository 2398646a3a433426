#include "server/gate/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <cstring>

#include "absl/strings/string_view.h"

#include "common/status.h"

namespace assay::gate {
namespace {

using CertPtr = std::unique_ptr<X509, OpenSslFree<X509_free>>;

// A client's certificate with its chain; ours have about 1 KiB.
constexpr long kClientCertificateBytesMax = 16 << 10;

// Protocols as ALPN lists them: each after its length (RFC 7301, section 3.1).
constexpr absl::string_view kHttp2 = "\x02h2";
constexpr absl::string_view kHttp1 = "\x08http/1.1";

bool Offers(absl::string_view offered, absl::string_view protocol) {
  while (!offered.empty()) {
    const size_t size = static_cast<unsigned char>(offered[0]) + size_t{1};
    if (size > offered.size()) return false;
    if (offered.substr(0, size) == protocol) return true;
    offered.remove_prefix(size);
  }
  return false;
}

// OpenSSL calls this for the ClientHello, before it decides whether to ask for a certificate.
int ChooseProtocol(SSL* ssl, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned int offered_size, void* /*unused*/) {
  const absl::string_view list(reinterpret_cast<const char*>(offered), offered_size);
  // gRPC's clients offer h2 alone; those of the web, which offer both, come with a question.
  const absl::string_view protocol = Offers(list, kHttp1)   ? kHttp1
                                     : Offers(list, kHttp2) ? kHttp2
                                                            : absl::string_view();
  if (protocol.empty()) return SSL_TLSEXT_ERR_ALERT_FATAL;
  if (protocol == kHttp2)
    SSL_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  *chosen = reinterpret_cast<const unsigned char*>(protocol.data()) + 1;
  *size = static_cast<unsigned char>(protocol.size() - 1);
  return SSL_TLSEXT_ERR_OK;
}

absl::Status Invalid(absl::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(std::string(what));
}

BioPtr Reader(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::Status UseServerCertificate(SSL_CTX* context, const CertificateAndKey& server) {
  const BioPtr chain = Reader(server.certificate_pem);
  const CertPtr leaf(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
  if (leaf == nullptr || SSL_CTX_use_certificate(context, leaf.get()) != 1)
    return Invalid("the server's certificate is unreadable");
  while (CertPtr next{PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1)
      return Invalid("the server's chain of certificates is unreadable");
  }
  ERR_clear_error();  // the end of the text
  const BioPtr key_text = Reader(server.key_pem);
  const KeyPtr key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, &NoPassphrase, nullptr));
  if (key == nullptr || SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return Invalid("the server's key is unreadable, or is not of its certificate");
  return absl::OkStatus();
}

absl::Status TrustClientsOf(SSL_CTX* context, const std::string& ca_pem) {
  const BioPtr text = Reader(ca_pem);
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  int count = 0;
  while (CertPtr ca{PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store, ca.get()) != 1 || SSL_CTX_add_client_CA(context, ca.get()) != 1)
      return Invalid("the CA's certificate is unusable");
    ++count;
  }
  ERR_clear_error();  // the end of the text
  return count > 0 ? absl::OkStatus() : Invalid("there is no CA certificate");
}

}  // namespace

absl::StatusOr<TlsContext> TlsContext::Make(const CertificateAndKey& server,
                                            const std::string& ca_pem) {
  ContextPtr context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return absl::ResourceExhaustedError("no memory for a TLS context");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context.get(), 0);
  // A write that could take a part is tried again from wherever the rest then lies; thousands of
  // idle connections keep no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_cert_list(context.get(), kClientCertificateBytesMax);
  SSL_CTX_set_alpn_select_cb(context.get(), &ChooseProtocol, nullptr);
  RETURN_IF_ERROR(UseServerCertificate(context.get(), server));
  RETURN_IF_ERROR(TrustClientsOf(context.get(), ca_pem));
  return TlsContext(std::move(context));
}

bool IsHttp2(const SSL* ssl) {
  const unsigned char* protocol = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  return absl::string_view(reinterpret_cast<const char*>(protocol), size) == kHttp2.substr(1);
}

}  // namespace assay::gate
