#include "server/web/http_server.h"

#include <openssl/ssl.h>

#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "server/web/http_connection.h"
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace assay::web {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using Error = boost::system::error_code;

constexpr int kBacklog = 1024;

class Listener {
 public:
  explicit Listener(ServerState* state) : state_(state), acceptor_(state->io) {}

  absl::Status Open(const tcp::endpoint& endpoint) {
    Error error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(kBacklog, error);
    if (error)
      return absl::UnavailableError(absl::StrCat("cannot listen at ", Text(endpoint), ": ",
                                                 error.message(), "; does another program?"));
    return absl::OkStatus();
  }

  std::string address() const { return Text(acceptor_.local_endpoint()); }

  void Accept() {
    acceptor_.async_accept([this](Error error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) Admit(std::move(socket));
      // Out of descriptors, most likely: not again at once.
      if (error) return AcceptLater();
      Accept();
    });
  }

  void Close() {
    Error ignored;
    acceptor_.close(ignored);
    timer_.cancel();
  }

 private:
  static constexpr auto kPause = std::chrono::milliseconds(100);

  static std::string Text(const tcp::endpoint& endpoint) {
    const std::string host = endpoint.address().to_string();
    return endpoint.address().is_v6() ? absl::StrCat("[", host, "]:", endpoint.port())
                                      : absl::StrCat(host, ":", endpoint.port());
  }

  void AcceptLater() {
    timer_.expires_after(kPause);
    timer_.async_wait([this](Error error) {
      if (!error) Accept();
    });
  }

  void Admit(tcp::socket socket) {
    Error error;
    const tcp::endpoint remote = socket.remote_endpoint(error);
    if (error) return;
    const std::string peer = remote.address().to_string();
    const auto known = state_->by_address.find(peer);
    const int count = known == state_->by_address.end() ? 0 : known->second;
    const HttpLimits& limits = state_->limits;
    if (count >= limits.connections_per_address_max ||
        state_->connection_count >= limits.connections_max) {
      ++state_->refused_count;
      return;  // closed
    }
    socket.set_option(tcp::no_delay(true), error);
    StartConnection(std::move(socket), peer, state_);
  }

  ServerState* const state_;
  tcp::acceptor acceptor_;
  asio::steady_timer timer_{state_->io};
};

class BeastServer final : public HttpServer {
 public:
  explicit BeastServer(HttpHandler* handler) : listener_(&state_) { state_.handler = handler; }
  ~BeastServer() override { Shutdown(absl::ZeroDuration()); }

  absl::Status Start(HttpServerOptions options) {
    state_.limits = options.limits;
    state_.is_plain = options.is_plain;
    if (!options.is_plain) RETURN_IF_ERROR(PrepareTls(options.certificate, &state_.tls));
    ASSIGN_OR_RETURN(const tcp::endpoint endpoint, Resolve(options.listen_address));
    RETURN_IF_ERROR(listener_.Open(endpoint));
    address_ = listener_.address();
    listener_.Accept();
    thread_ = std::thread([this] { state_.io.run(); });
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }
  HttpCounts counts() const override {
    return {.connections = state_.connection_count,
            .open_responses = state_.open_count,
            .requests = state_.request_count,
            .refused_connections = state_.refused_count};
  }

  absl::Status Renew(const CertificateAndKey& certificate) override {
    using Context = asio::ssl::context;
    auto fresh = std::make_shared<Context>(Context::tls_server);
    RETURN_IF_ERROR(PrepareTls(certificate, fresh.get()));
    asio::post(state_.io, [this, fresh] { state_.tls = std::move(*fresh); });
    return absl::OkStatus();
  }

  void Shutdown(absl::Duration grace) override {
    if (!thread_.joinable()) return;
    asio::post(state_.io, [this, grace] {
      state_.is_stopping = true;
      listener_.Close();
      for (const auto& connection : Living())
        connection->Stop();
      CutLater(grace);
    });
    thread_.join();
  }

 private:
  // TLS 1.2 and 1.3, HTTP/1.1, no renegotiation, and no tickets that would outlive the process.
  static absl::Status PrepareTls(const CertificateAndKey& pair, asio::ssl::context* prepared) {
    using Context = asio::ssl::context;
    Error error;
    Context& tls = *prepared;
    tls.set_options(Context::default_workarounds | Context::no_sslv2 | Context::no_sslv3 |
                        Context::no_tlsv1 | Context::no_tlsv1_1 | Context::no_compression,
                    error);
    SSL_CTX_set_options(tls.native_handle(), SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(tls.native_handle(), SSL_MODE_RELEASE_BUFFERS);
    if (!error) tls.use_certificate_chain(asio::buffer(pair.certificate_pem), error);
    if (!error) tls.use_private_key(asio::buffer(pair.key_pem), Context::pem, error);
    if (error)
      return absl::InvalidArgumentError(absl::StrCat(
          "the certificate or its key is unusable: ", error.message(), "; both are PEM"));
    SSL_CTX_set_alpn_select_cb(tls.native_handle(), ChooseHttp1, nullptr);
    return absl::OkStatus();
  }

  static int ChooseHttp1(SSL*, const unsigned char** out, unsigned char* out_size,
                         const unsigned char* in, unsigned int in_size, void*) {
    static constexpr unsigned char kHttp1[] = "\x08http/1.1";
    unsigned char* chosen = nullptr;
    if (SSL_select_next_proto(&chosen, out_size, kHttp1, sizeof(kHttp1) - 1, in, in_size) !=
        OPENSSL_NPN_NEGOTIATED)
      return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
  }

  absl::StatusOr<tcp::endpoint> Resolve(const std::string& address) {
    const size_t colon = address.rfind(':');
    int port = -1;
    if (colon == std::string::npos || colon == 0 ||
        !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", address, "\" is not host:port, like 127.0.0.1:8443"));
    }
    std::string host = address.substr(0, colon);
    if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    Error error;
    const auto found = tcp::resolver(state_.io).resolve(host, std::to_string(port), error);
    if (error || found.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("cannot find the address of \"", host, "\": ", error.message()));
    return found.begin()->endpoint();
  }

  std::vector<std::shared_ptr<Connection>> Living() const {
    std::vector<std::shared_ptr<Connection>> living;
    for (Connection* const connection : state_.connections)
      if (auto held = connection->weak_from_this().lock()) living.push_back(std::move(held));
    return living;
  }

  // The thread ends when no connection is left: those that are there after `grace` are cut, and
  // gone once their handlers have run. Only what the site forgot to let go of is not waited for.
  void CutLater(absl::Duration grace) {
    end_timer_.expires_after(absl::ToChronoNanoseconds(kGlance));
    end_timer_.async_wait([this, grace](Error) {
      if (state_.connections.empty() || grace < -kCutGrace) return state_.io.stop();
      if (grace <= absl::ZeroDuration()) {
        for (const auto& connection : Living())
          connection->Cut();
      }
      CutLater(grace - kGlance);
    });
  }

  static constexpr absl::Duration kGlance = absl::Milliseconds(10);
  static constexpr absl::Duration kCutGrace = absl::Seconds(2);

  ServerState state_;
  Listener listener_;
  asio::steady_timer end_timer_{state_.io};
  std::string address_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options,
                                                              HttpHandler* handler) {
  auto server = std::make_unique<BeastServer>(handler);
  RETURN_IF_ERROR(server->Start(std::move(options)));
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace assay::web
