#include "server/gate/stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "common/log.h"

namespace assay::gate {
namespace {

// For plain sockets: `wanted` is what to wait for if the call would block.
Io FromErrno(Io wanted) {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? wanted : Io::kClosed;
}

int SendWithoutSignal(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  errno = 0;
  const ssize_t put = send(static_cast<int>(BIO_get_fd(bio, nullptr)), bytes,
                           static_cast<size_t>(size), MSG_NOSIGNAL);
  if (put < 0 && BIO_sock_should_retry(-1) != 0) BIO_set_retry_write(bio);
  return static_cast<int>(put);
}

// OpenSSL's sockets, but for a write to one whose peer has gone: theirs raises SIGPIPE.
const BIO_METHOD* SocketMethod() {
  static const BIO_METHOD* const method = [] {
    const BIO_METHOD* const socket = BIO_s_socket();
    BIO_METHOD* const made = BIO_meth_new(BIO_TYPE_SOCKET, "socket without SIGPIPE");
    CHECK(made != nullptr);
    BIO_meth_set_write(made, &SendWithoutSignal);
    BIO_meth_set_read(made, BIO_meth_get_read(socket));
    BIO_meth_set_ctrl(made, BIO_meth_get_ctrl(socket));
    BIO_meth_set_create(made, BIO_meth_get_create(socket));
    BIO_meth_set_destroy(made, BIO_meth_get_destroy(socket));
    return made;
  }();
  return method;
}

}  // namespace

Stream::Stream(UniqueFd fd, SslPtr ssl) : fd_(std::move(fd)), ssl_(std::move(ssl)) {
  BIO* const bio = BIO_new(SocketMethod());
  CHECK(bio != nullptr);
  BIO_set_fd(bio, fd_.get(), BIO_NOCLOSE);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_accept_state(ssl_.get());
}

Io Stream::Translate(int result) const {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Io::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Io::kWantWrite;
    default:
      return Io::kClosed;
  }
}

Io Stream::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  return result == 1 ? Io::kDone : Translate(result);
}

Io Stream::Read(std::span<char> buffer, size_t* count) {
  if (ssl_ == nullptr) {
    const ssize_t got = read(fd_.get(), buffer.data(), buffer.size());
    if (got < 0) return FromErrno(Io::kWantRead);
    *count = static_cast<size_t>(got);
    return got == 0 ? Io::kClosed : Io::kDone;
  }
  ERR_clear_error();
  const int result = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), count);
  return result == 1 ? Io::kDone : Translate(result);
}

Io Stream::Write(absl::string_view bytes, size_t* count) {
  if (ssl_ == nullptr) {
    const ssize_t put = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put < 0) return FromErrno(Io::kWantWrite);
    *count = static_cast<size_t>(put);
    return Io::kDone;
  }
  ERR_clear_error();
  const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), count);
  return result == 1 ? Io::kDone : Translate(result);
}

void Stream::ShutdownWrite() {
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_.get())) {
    ERR_clear_error();
    static_cast<void>(SSL_shutdown(ssl_.get()));
  }
  shutdown(fd_.get(), SHUT_WR);
}

}  // namespace assay::gate
