// A client that sends whatever bytes a test wants over TLS, and reads what comes back.

#ifndef TESTS_SUPPORT_TLS_CLIENT_H_
#define TESTS_SUPPORT_TLS_CLIENT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/log.h"
#include "common/openssl_ptr.h"

namespace assay::testing {

// Verifies nobody: what is tested is the server. Reads end after two minutes, for a hang.
class TlsClient {
 public:
  // Connects to 127.0.0.1 at the port of `address` (host:port), and shakes hands.
  //   receive_bytes: of the kernel's buffer; 0: as it likes
  explicit TlsClient(const std::string& address, int receive_bytes = 0) {
    // Writing to a server that has closed is an answer, not the end of the test.
    CHECK(std::signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    constexpr timeval kPatience = {.tv_sec = 120, .tv_usec = 0};
    fd_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    if (receive_bytes > 0)
      setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    sockaddr_in target = {};
    target.sin_family = AF_INET;
    target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int port = 0;
    CHECK(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    target.sin_port = htons(static_cast<uint16_t>(port));
    if (connect(fd_.get(), reinterpret_cast<const sockaddr*>(&target), sizeof(target)) != 0) return;
    context_.reset(SSL_CTX_new(TLS_client_method()));
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), fd_.get());
    is_connected_ = SSL_connect(ssl_.get()) == 1;
  }

  bool is_connected() const { return is_connected_; }

  // Whom the server says to be: "/CN=localhost".
  std::string server_name() const {
    if (!is_connected_) return "";
    std::string name(256, '\0');
    X509_NAME_oneline(X509_get_subject_name(SSL_get0_peer_certificate(ssl_.get())), name.data(),
                      static_cast<int>(name.size()));
    return name.c_str();
  }

  // False once the server has closed.
  bool Send(absl::string_view bytes) {
    if (!is_connected_ || bytes.empty()) return is_connected_;
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }

  // Some bytes; empty at the end.
  std::string Read(int bytes_max = 64 << 10) {
    if (!is_connected_) return "";
    std::string bytes(static_cast<size_t>(bytes_max), '\0');
    const int size = SSL_read(ssl_.get(), bytes.data(), bytes_max);
    bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return bytes;
  }

  // All until the server closes.
  std::string ReadToEnd() {
    std::string all;
    for (std::string some = Read(); !some.empty(); some = Read())
      all += some;
    return all;
  }

  // Until `text` has come, or the server closes; what came, and no byte more is lost.
  std::string ReadUntil(absl::string_view text) {
    std::string all;
    while (all.find(std::string(text)) == std::string::npos) {
      const std::string one = Read(1);
      if (one.empty()) break;
      all += one;
    }
    return all;
  }

  // One response with a Content-Length: head and body.
  std::string ReadResponse() {
    std::string response = ReadUntil("\r\n\r\n");
    const size_t at = response.find("Content-Length: ");
    int64_t size = 0;
    if (at == std::string::npos) return response;
    const size_t end = response.find("\r\n", at);
    CHECK(absl::SimpleAtoi(response.substr(at + 16, end - at - 16), &size));
    while (size > 0) {
      const std::string some = Read(static_cast<int>(size));
      if (some.empty()) break;
      response += some;
      size -= static_cast<int64_t>(some.size());
    }
    return response;
  }

 private:
  UniqueFd fd_;
  std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, OpenSslFree<SSL_free>> ssl_;
  bool is_connected_ = false;
};

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_TLS_CLIENT_H_
