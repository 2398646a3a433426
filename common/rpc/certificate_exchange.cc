#include "common/rpc/certificate_exchange.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "common/rpc/http_status.h"
#include "common/status.h"
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace assay {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Error = boost::system::error_code;

constexpr uint64_t kBodyBytesMax = 64 << 10;
constexpr absl::Duration kRetryInterval = absl::Milliseconds(100);

struct HostAndPort {
  std::string host;
  std::string port;
};

absl::StatusOr<HostAndPort> Split(const std::string& target) {
  const size_t colon = target.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == target.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", target, "\" is not host:port, like coordinator.example.org:7443"));
  }
  std::string host = target.substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]"))
    host = host.substr(1, host.size() - 2);
  return HostAndPort{.host = std::move(host), .port = target.substr(colon + 1)};
}

// One request: each function starts an operation, whose end starts the next.
class Exchange {
 public:
  Exchange(const HostAndPort& server, const CertificateExchange& exchange)
      : server_(server),
        tls_(asio::ssl::context::tls_client),
        resolver_(context_),
        stream_(context_, tls_) {
    request_.method(http::verb::post);
    request_.target(exchange.path);
    request_.set(http::field::host, server.host);
    request_.set(http::field::authorization, absl::StrCat("Bearer ", exchange.endpoint.token));
    request_.set(http::field::content_type, "application/pkcs10");
    request_.body() = exchange.csr_pem;
    request_.prepare_payload();
    response_.body_limit(kBodyBytesMax);
  }

  absl::StatusOr<std::string> Run(const std::string& ca_pem, absl::Duration timeout) {
    Error error;
    stream_.set_verify_mode(asio::ssl::verify_peer, error);
    stream_.set_verify_callback(asio::ssl::host_name_verification(server_.host), error);
    // The stream was made of tls_, whose store of authorities it shares.
    tls_.add_certificate_authority(asio::buffer(ca_pem), error);
    if (error)
      return absl::InvalidArgumentError(absl::StrCat("unusable CA certificate: ", error.message()));
    static constexpr unsigned char kHttp1[] = "\x08http/1.1";
    SSL_set_alpn_protos(stream_.native_handle(), kHttp1, sizeof(kHttp1) - 1);
    Resolve();
    context_.run_for(absl::ToChronoMilliseconds(timeout));
    if (result_.has_value()) return *std::move(result_);
    return absl::UnavailableError("no answer in time");
  }

 private:
  // Ends the chain.
  void Fail(absl::string_view what, const Error& error) {
    result_ = absl::UnavailableError(absl::StrCat(what, ": ", error.message()));
  }

  void Resolve() {
    resolver_.async_resolve(server_.host, server_.port,
                            [this](Error error, asio::ip::tcp::resolver::results_type found) {
                              if (error) return Fail("cannot find the host", error);
                              Connect(found);
                            });
  }
  void Connect(const asio::ip::tcp::resolver::results_type& addresses) {
    asio::async_connect(stream_.lowest_layer(), addresses,
                        [this](Error error, const asio::ip::tcp::endpoint&) {
                          if (error) return Fail("cannot connect", error);
                          Handshake();
                        });
  }
  void Handshake() {
    stream_.async_handshake(asio::ssl::stream_base::client, [this](Error error) {
      if (error) return Fail("the TLS handshake failed", error);
      Write();
    });
  }
  void Write() {
    http::async_write(stream_, request_, [this](Error error, size_t) {
      if (error) return Fail("cannot ask", error);
      Read();
    });
  }
  void Read() {
    http::async_read(stream_, buffer_, response_, [this](Error error, size_t) {
      if (error) return Fail("no answer", error);
      const auto& response = response_.get();
      absl::string_view text = response.body();
      if (response.result_int() == 200) {
        result_ = std::string(text);
        return;
      }
      absl::ConsumeSuffix(&text, "\n");
      result_ = absl::Status(CodeOfHttp(static_cast<int>(response.result_int())), text);
    });
  }

  const HostAndPort server_;
  asio::io_context context_{1};
  asio::ssl::context tls_;
  asio::ip::tcp::resolver resolver_;
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
  http::request<http::string_body> request_;
  http::response_parser<http::string_body> response_;
  boost::beast::flat_buffer buffer_;
  std::optional<absl::StatusOr<std::string>> result_;
};

}  // namespace

std::string AccessCertificatePath() {
  return "/v1/access-certificate";
}

std::string WorkerCertificatePath(const std::string& worker) {
  return absl::StrCat("/v1/worker-certificate/", worker);
}

absl::StatusOr<std::string> ExchangeForCertificate(const CertificateExchange& exchange) {
  ASSIGN_OR_RETURN(const HostAndPort server, Split(exchange.endpoint.target));
  const absl::Time deadline = absl::Now() + exchange.timeout;
  while (true) {
    absl::StatusOr<std::string> answer =
        Exchange(server, exchange).Run(exchange.endpoint.ca_pem, deadline - absl::Now());
    const bool is_over = !exchange.is_patient || absl::Now() + kRetryInterval >= deadline;
    if (is_over || !absl::IsUnavailable(answer.status())) return answer;
    absl::SleepFor(kRetryInterval);
  }
}

}  // namespace assay
