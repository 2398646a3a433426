#include "common/client/tls_probe.h"

#include <netdb.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/openssl_ptr.h"
#include "common/status.h"

namespace assay::client {
namespace {

using AddressesPtr = std::unique_ptr<addrinfo, OpenSslFree<freeaddrinfo>>;
using ContextPtr = std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, OpenSslFree<SSL_free>>;
using CertificatePtr = std::unique_ptr<X509, OpenSslFree<X509_free>>;

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

// 0 when a connection is there, else the errno of why there is none.
int Connect(int fd, const addrinfo& address, absl::Duration timeout) {
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd entry{fd, POLLOUT, 0};
  if (poll(&entry, 1, Milliseconds(timeout)) != 1) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

absl::StatusOr<UniqueFd> ConnectTo(const std::string& host, const std::string& port,
                                   absl::Duration timeout) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return absl::UnavailableError(absl::StrCat(host, ": ", gai_strerror(error)));
  const AddressesPtr addresses(found);
  int last_error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    UniqueFd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    last_error = fd.is_open() ? Connect(fd.get(), *one, timeout) : errno;
    if (last_error == 0) return fd;
  }
  return absl::UnavailableError(
      absl::StrCat("cannot connect to ", host, ":", port, ": ", std::strerror(last_error)));
}

// While this lives, a write of the thread to a peer that has gone is an error and no SIGPIPE.
class PipeSignalHeld {
 public:
  PipeSignalHeld() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalHeld() {
    const timespec at_once = {};
    if (sigismember(&before_, SIGPIPE) == 0) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalHeld(const PipeSignalHeld&) = delete;
  PipeSignalHeld& operator=(const PipeSignalHeld&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

// False if it did not come to an end in time, or to a bad one.
bool ShakeHands(SSL* ssl, int fd, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const int result = SSL_connect(ssl);
    if (result == 1) return true;
    const int error = SSL_get_error(ssl, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return false;
    pollfd entry{fd, static_cast<int16_t>(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), 0};
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration() || poll(&entry, 1, Milliseconds(left)) != 1) return false;
  }
}

}  // namespace

absl::StatusOr<absl::Time> ProbeCertificateEnd(const std::string& address, absl::Duration timeout) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    return absl::InvalidArgumentError(absl::StrCat("\"", address, "\" is not host:port"));
  absl::string_view host(address.data(), colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  std::string name(host);
  const PipeSignalHeld held;
  ASSIGN_OR_RETURN(const UniqueFd fd, ConnectTo(name, address.substr(colon + 1), timeout));
  const ContextPtr context(SSL_CTX_new(TLS_client_method()));
  const SslPtr ssl(SSL_new(context.get()));
  if (ssl == nullptr || SSL_set_fd(ssl.get(), fd.get()) != 1)
    return absl::InternalError("OpenSSL gives no connection");
  // SSL_set_tlsext_host_name, which is a macro with an old-style cast.
  SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  // A server that wants a certificate of ours may end the connection after the handshake; what it
  // has shown by then is all that is asked.
  const bool is_done = ShakeHands(ssl.get(), fd.get(), timeout);
  const CertificatePtr certificate(SSL_get1_peer_certificate(ssl.get()));
  std::tm end{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return absl::UnavailableError(absl::StrCat(
        address, is_done ? " shows no certificate" : " is reached, but speaks no TLS in time"));
  }
  return absl::FromTM(end, absl::UTCTimeZone());
}

}  // namespace assay::client
