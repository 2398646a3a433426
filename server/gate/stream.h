// A connected socket, with TLS or without, that never blocks.

#ifndef SERVER_GATE_STREAM_H_
#define SERVER_GATE_STREAM_H_

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <span>

#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/openssl_ptr.h"

namespace assay::gate {

using SslPtr = std::unique_ptr<SSL, OpenSslFree<SSL_free>>;

// How an attempt ended.
enum class Io {
  kDone,
  kWantRead,   // try again once the socket can be read
  kWantWrite,  // or written
  kClosed,     // in order by the peer, or not: nothing more will come or go
};

// Movable; not thread-safe.
class Stream {
 public:
  // Plain, over a non-blocking socket.
  explicit Stream(UniqueFd fd) : fd_(std::move(fd)) {}
  // As the server of TLS. `ssl` is of a server's context and has no socket yet.
  Stream(UniqueFd fd, SslPtr ssl);

  int fd() const { return fd_.get(); }
  SSL* ssl() const { return ssl_.get(); }

  // Goes on with the handshake.
  Io Handshake();
  // At least one byte into `buffer`, if kDone; their number in `count`.
  Io Read(std::span<char> buffer, size_t* count);
  // At least one byte of `bytes`, which must not be empty, if kDone; their number in `count`.
  Io Write(absl::string_view bytes, size_t* count);
  // Says that nothing more will be written. Best effort.
  void ShutdownWrite();

 private:
  Io Translate(int result) const;

  UniqueFd fd_;
  SslPtr ssl_;  // null: plain. After fd_, so that it ends first
};

}  // namespace assay::gate

#endif  // SERVER_GATE_STREAM_H_
