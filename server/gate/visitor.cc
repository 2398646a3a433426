#include "server/gate/visitor.h"

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "server/gate/certificate_evidence.h"
#include "server/gate/tls_context.h"
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

namespace assay::gate {
namespace {

namespace http = boost::beast::http;

// A certificate request has about 500 bytes.
constexpr uint32_t kHeaderBytesMax = 4 << 10;
constexpr uint64_t kBodyBytesMax = 16 << 10;
constexpr size_t kReadBytes = 4 << 10;
constexpr absl::string_view kBearer = "Bearer ";

absl::string_view View(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

std::string BearerToken(const http::request<http::string_body>& request) {
  const absl::string_view header = View(request[http::field::authorization]);
  if (!absl::StartsWithIgnoreCase(header, kBearer)) return "";
  return std::string(header.substr(kBearer.size()));
}

std::string Text(const Answer& answer) {
  const auto status = static_cast<http::status>(answer.http_status);
  return absl::StrCat("HTTP/1.1 ", answer.http_status, " ", View(http::obsolete_reason(status)),
                      "\r\ncontent-type: text/plain; charset=utf-8\r\ncache-control: no-store"
                      "\r\nconnection: close\r\ncontent-length: ",
                      answer.body.size(), "\r\n\r\n", answer.body);
}

}  // namespace

Visitor::Visitor(const Host* host, Stream stream, std::string peer,
                 absl::AnyInvocable<void()> on_over)
    : host_(host),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      on_over_(std::move(on_over)),
      readiness_(std::make_unique<Readiness>(host->context, stream_->fd())),
      deadline_(*host->context) {}

void Visitor::Close() {
  if (is_over_) return;
  is_over_ = true;
  deadline_.cancel();
  readiness_.reset();
  stream_.reset();
  on_over_();
}

void Visitor::SetDeadline() {
  deadline_.expires_after(absl::ToChronoMilliseconds(host_->patience));
  deadline_.async_wait([self = weak_from_this()](boost::system::error_code error) {
    if (error) return;
    if (const std::shared_ptr<Visitor> visitor = self.lock()) visitor->Close();
  });
}

void Visitor::Await(Io io, Step step) {
  if (io == Io::kClosed) return Close();
  auto then = [self = shared_from_this(), step](boost::system::error_code) {
    if (!self->is_over_) ((*self).*step)();
  };
  if (io == Io::kWantWrite)
    readiness_->WaitWrite(std::move(then));
  else
    readiness_->WaitRead(std::move(then));
}

void Visitor::StartTls() {
  SetDeadline();
  // Most bytes that strangers send come after a connection; nothing is computed before they do.
  Await(Io::kWantRead, &Visitor::Handshake);
}

void Visitor::StartKnown(const auth::Evidence& evidence) {
  readiness_.reset();
  absl::Status status = host_->admit(&*stream_, evidence);
  if (status.ok()) return Close();
  readiness_ = std::make_unique<Readiness>(host_->context, stream_->fd());
  SetDeadline();
  Refuse(std::move(status));
}

void Visitor::Handshake() {
  const Io io = stream_->Handshake();
  if (io != Io::kDone) return Await(io, &Visitor::Handshake);
  if (!IsHttp2(stream_->ssl())) {
    parser_.emplace();
    parser_->header_limit(kHeaderBytesMax);
    parser_->body_limit(kBodyBytesMax);
    parser_->eager(true);
    return ReadQuestion();
  }
  X509* const certificate = SSL_get0_peer_certificate(stream_->ssl());
  if (certificate == nullptr) return Close();  // the handshake has demanded one
  const absl::StatusOr<auth::Evidence> evidence = EvidenceOfCertificate(certificate);
  if (evidence.ok()) return StartKnown(*evidence);
  Refuse(evidence.status());
}

void Visitor::ReadQuestion() {
  std::array<char, kReadBytes> buffer;
  size_t count = 0;
  const Io io = stream_->Read(buffer, &count);
  if (io != Io::kDone) return Await(io, &Visitor::ReadQuestion);
  inbox_.append(buffer.data(), count);
  boost::system::error_code error;
  const size_t parsed = parser_->put(boost::asio::buffer(inbox_), error);
  inbox_.erase(0, parsed);
  if (error == http::error::need_more) error = {};
  if (error == http::error::body_limit)
    return Reply({.http_status = 413, .body = "the request is longer than 16 KiB\n"});
  if (error || inbox_.size() > kHeaderBytesMax)
    return Reply({.http_status = 400, .body = "not a request of HTTP/1.1 that is served here\n"});
  if (parser_->is_header_done() && parser_->chunked())
    return Reply({.http_status = 411, .body = "give a content-length\n"});
  if (parser_->is_done()) return Ask();
  // There may be more in TLS's buffer, of which the socket tells nothing.
  boost::asio::post(*host_->context, [self = shared_from_this()] {
    if (!self->is_over_) self->ReadQuestion();
  });
}

void Visitor::Ask() {
  const http::request<http::string_body>& request = parser_->get();
  Question question = {.method = std::string(View(request.method_string())),
                       .target = std::string(View(request.target())),
                       .token = BearerToken(request),
                       .body = request.body(),
                       .peer = peer_};
  host_->ask(std::move(question), [self = shared_from_this()](Answer answer) mutable {
    boost::asio::io_context& context = *self->host_->context;
    boost::asio::post(context, [self = std::move(self), answer = std::move(answer)] {
      if (!self->is_over_) self->Reply(answer);
    });
  });
}

void Visitor::Reply(Answer answer) {
  outbox_ = Text(answer);
  after_send_ = &Visitor::Linger;
  Send();
}

void Visitor::Refuse(absl::Status reason) {
  if (host_->on_refusal) host_->on_refusal(peer_, reason);
  refusal_.emplace(std::move(reason));
  outbox_ = Refusal::Greeting();
  after_send_ = &Visitor::ReadCall;
  Send();
}

void Visitor::ReadCall() {
  std::array<char, kReadBytes> buffer;
  size_t count = 0;
  const Io io = stream_->Read(buffer, &count);
  if (io != Io::kDone) return Await(io, &Visitor::ReadCall);
  absl::StatusOr<std::string> answer = refusal_->Answer(absl::string_view(buffer.data(), count));
  if (!answer.ok()) return Close();
  if (!answer->empty()) after_send_ = &Visitor::Linger;
  outbox_ = *std::move(answer);
  Send();
}

void Visitor::Send() {
  while (!outbox_.empty()) {
    size_t count = 0;
    const Io io = stream_->Write(outbox_, &count);
    if (io != Io::kDone) return Await(io, &Visitor::Send);
    outbox_.erase(0, count);
  }
  if (after_send_ == &Visitor::Linger) stream_->ShutdownWrite();
  boost::asio::post(*host_->context, [self = shared_from_this()] {
    if (!self->is_over_) ((*self).*(self->after_send_))();
  });
}

void Visitor::Linger() {
  // Closing with bytes unread would reset the connection, and the client might lose the answer.
  std::array<char, kReadBytes> buffer;
  size_t count = 0;
  const Io io = stream_->Read(buffer, &count);
  if (io != Io::kDone) return Await(io, &Visitor::Linger);
  boost::asio::post(*host_->context, [self = shared_from_this()] {
    if (!self->is_over_) self->Linger();
  });
}

}  // namespace assay::gate
