// A server of HTTPS on a port of this machine that answers as a test says, one request after the
// other.

#ifndef TESTS_SUPPORT_HTTPS_SERVER_H_
#define TESTS_SUPPORT_HTTPS_SERVER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/log.h"
#include "common/openssl_ptr.h"
#include "common/pki.h"

namespace assay::testing {

struct HttpsAnswer {
  int status = 200;
  std::string body;
};

class HttpsServer {
 public:
  // What is answered to a request, which is given with its head; nullopt: nothing, and the
  // connection stays open until the client ends it. Called in the server's thread.
  using Answer = std::function<std::optional<HttpsAnswer>(const std::string& request)>;

  // `folder` gets the files of certificate and key.
  HttpsServer(const std::string& folder, Answer answer) : answer_(std::move(answer)) {
    const Validity validity{.now = absl::Now(), .lifetime = absl::Hours(1)};
    ca_ = *MakeCa("Test Authority", validity);
    const KeyAndCsr key = *MakeKeyAndCsr("controller");
    const std::string certificate = *SignCsr(ca_, key.csr_pem,
                                             {.common_name = "controller",
                                              .subject_names = {"127.0.0.1"},
                                              .uris = {},
                                              .kind = CertificateKind::kServer,
                                              .validity = validity});
    context_.reset(SSL_CTX_new(TLS_server_method()));
    CHECK(WriteFileAtomic(folder + "/server.pem", certificate).ok());
    CHECK(WriteFileAtomic(folder + "/server.key", key.key_pem).ok());
    CHECK(SSL_CTX_use_certificate_file(context_.get(), (folder + "/server.pem").c_str(),
                                       SSL_FILETYPE_PEM) == 1);
    CHECK(SSL_CTX_use_PrivateKey_file(context_.get(), (folder + "/server.key").c_str(),
                                      SSL_FILETYPE_PEM) == 1);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    CHECK(bind(listener_.get(), raw, size) == 0 && listen(listener_.get(), 8) == 0);
    CHECK(getsockname(listener_.get(), raw, &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~HttpsServer() {
    const uint64_t one = 1;
    CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
    thread_.join();
  }

  std::string Url(const std::string& path) const {
    return absl::StrCat("https://127.0.0.1:", port_, path);
  }
  const std::string& ca_pem() const { return ca_.certificate_pem; }

 private:
  // False: it is over.
  bool AwaitReadable(int fd) const {
    pollfd entries[] = {{fd, POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    poll(entries, 2, -1);
    return (entries[1].revents & POLLIN) == 0;
  }

  void Serve() {
    while (AwaitReadable(listener_.get())) {
      const UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection.is_open()) Talk(connection.get());
    }
  }

  void Talk(int fd) {
    const std::unique_ptr<SSL, OpenSslFree<SSL_free>> ssl(SSL_new(context_.get()));
    SSL_set_fd(ssl.get(), fd);
    if (!AwaitReadable(fd) || SSL_accept(ssl.get()) != 1) return;
    std::string request;
    char bytes[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const int count = SSL_read(ssl.get(), bytes, sizeof(bytes));
      if (count <= 0) return;
      request.append(bytes, static_cast<size_t>(count));
    }
    const std::optional<HttpsAnswer> answer = answer_(request);
    if (!answer.has_value()) {
      AwaitReadable(fd);
      return;
    }
    const std::string text =
        absl::StrCat("HTTP/1.1 ", answer->status,
                     " Said\r\nConnection: close\r\nContent-Length: ", answer->body.size(),
                     "\r\n\r\n", answer->body);
    SSL_write(ssl.get(), text.data(), static_cast<int>(text.size()));
    SSL_shutdown(ssl.get());
  }

  const Answer answer_;
  const UniqueFd stop_{eventfd(0, EFD_CLOEXEC)};
  const UniqueFd listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  CertificateAndKey ca_;
  std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>> context_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace assay::testing

#endif  // TESTS_SUPPORT_HTTPS_SERVER_H_
