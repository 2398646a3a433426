#include "server/gate/stream.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/pki.h"
#include "server/gate/tls_context.h"
#include "tests/support/status_matchers.h"

namespace assay::gate {
namespace {

using ContextPtr = std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>>;

// A pair of connected sockets that never block.
struct Ends {
  UniqueFd server;
  UniqueFd client;
};

Ends Connect() {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return {.server = UniqueFd(fds[0]), .client = UniqueFd(fds[1])};
}

TlsContext ServerContext() {
  const Validity validity{.now = absl::Now(), .lifetime = absl::Hours(1)};
  const CertificateAndKey ca = *MakeCa("test CA", validity);
  const KeyAndCsr made = *MakeKeyAndCsr("coordinator");
  const std::string certificate = *SignCsr(ca, made.csr_pem,
                                           {.common_name = "coordinator",
                                            .subject_names = {"localhost"},
                                            .kind = CertificateKind::kServer,
                                            .validity = validity});
  return *TlsContext::Make({.certificate_pem = certificate, .key_pem = made.key_pem},
                           ca.certificate_pem);
}

// What a client of TLS says first.
void SayHello(int fd) {
  const ContextPtr context(SSL_CTX_new(TLS_client_method()));
  const SslPtr ssl(SSL_new(context.get()));
  constexpr unsigned char kHttp1[] = "\x08http/1.1";
  ASSERT_EQ(SSL_set_alpn_protos(ssl.get(), kHttp1, sizeof(kHttp1) - 1), 0);
  ASSERT_EQ(SSL_set_fd(ssl.get(), fd), 1);
  SSL_set_connect_state(ssl.get());
  const int result = SSL_do_handshake(ssl.get());
  ASSERT_EQ(SSL_get_error(ssl.get(), result), SSL_ERROR_WANT_READ);
}

// No program that holds a gate may die of a peer that goes at a bad moment, whatever it does with
// SIGPIPE, which here ends it.
TEST(StreamTest, APeerThatGoesIsAnEndAndNotASignal) {
  Ends tls = Connect();
  Stream stream(std::move(tls.server), ServerContext().NewConnection());
  SayHello(tls.client.get());
  tls.client.Reset();
  EXPECT_EQ(stream.Handshake(), Io::kClosed);
  stream.ShutdownWrite();

  Ends plain = Connect();
  Stream other(std::move(plain.server));
  plain.client.Reset();
  size_t count = 0;
  EXPECT_EQ(other.Write("hello", &count), Io::kClosed);
}

TEST(StreamTest, WaitsForWhatItsPeerHasNotSaidYet) {
  Ends tls = Connect();
  Stream stream(std::move(tls.server), ServerContext().NewConnection());
  EXPECT_EQ(stream.Handshake(), Io::kWantRead);
  SayHello(tls.client.get());
  EXPECT_EQ(stream.Handshake(), Io::kWantRead);
}

}  // namespace
}  // namespace assay::gate
