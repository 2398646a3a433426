#include "tests/fuzz/gate_properties.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"

#include "common/log.h"
#include "common/pki.h"
#include "server/gate/frame_guard.h"
#include "server/gate/refusal.h"
#include "server/gate/tls_context.h"
#include "server/gate/visitor.h"
#include "tests/support/certificate_subject.h"
#include <boost/asio/io_context.hpp>

namespace assay::testing {
namespace {

constexpr size_t kPrefaceBytes = 24;
constexpr size_t kFrameHeaderBytes = 9;

// ---------------------------------------------------------------------------------------- frames

// The verdict about `bytes`, given in pieces of `piece_bytes`.
absl::Status Judge(absl::string_view bytes, size_t piece_bytes) {
  gate::FrameGuard guard(1 << 20);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size())))
    if (const absl::Status status = guard.Check(bytes.substr(0, piece_bytes)); !status.ok())
      return status;
  return absl::OkStatus();
}

// Written anew from the standard, for bytes that have passed.
void CheckBlocks(absl::string_view bytes) {
  if (bytes.size() < kPrefaceBytes) return;
  CHECK(absl::StartsWith(bytes, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  bytes.remove_prefix(kPrefaceBytes);
  uint32_t block_bytes = 0;
  int block_frames = 0;
  while (bytes.size() >= kFrameHeaderBytes) {
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(bytes[at]); };
    const uint32_t length = uint32_t{byte(0)} << 16 | uint32_t{byte(1)} << 8 | byte(2);
    constexpr uint8_t kHeaders = 1, kContinuation = 9, kEndHeaders = 4;
    CHECK((block_frames > 0) == (byte(3) == kContinuation));
    if (byte(3) == kHeaders || byte(3) == kContinuation) {
      block_bytes += length;
      ++block_frames;
      CHECK(block_bytes <= gate::FrameGuard::kHeaderBlockBytesMax);
      CHECK(block_frames <= gate::FrameGuard::kHeaderBlockFramesMax);
      if ((byte(4) & kEndHeaders) != 0) block_bytes = 0, block_frames = 0;
    }
    bytes.remove_prefix(std::min(bytes.size(), kFrameHeaderBytes + length));
  }
}

void CheckRefusal(absl::string_view bytes) {
  constexpr size_t kAnswerBytesMax = 4096;
  gate::Refusal refusal(absl::PermissionDeniedError(std::string(bytes.substr(0, 2000))));
  const absl::StatusOr<std::string> answer = refusal.Answer(bytes);
  if (answer.ok()) CHECK(answer->size() <= kAnswerBytesMax);
}

// ----------------------------------------------------------------------------------------- visits

struct Identities {
  CertificateAndKey ca;
  CertificateAndKey server;
};

const Identities& Ours() {
  static const auto* const ours = [] {
    const Validity validity = {absl::Now(), absl::Hours(24)};
    auto* made = new Identities{.ca = *MakeCa("fuzz CA", validity), .server = {}};
    const KeyAndCsr request = *MakeKeyAndCsr("assayd");
    made->server = {*SignCsr(made->ca, request.csr_pem,
                             {.common_name = "assayd",
                              .subject_names = {"localhost"},
                              .kind = CertificateKind::kServer,
                              .validity = validity}),
                    request.key_pem};
    return made;
  }();
  return *ours;
}

// A stranger's end of a connection, on the thread of the visitor's context.
class Stranger {
 public:
  Stranger(UniqueFd fd, boost::asio::io_context* context) : fd_(std::move(fd)), context_(*context) {
    static SSL_CTX* const client = SSL_CTX_new(TLS_client_method());
    ssl_.reset(SSL_new(client));
    SSL_set_fd(ssl_.get(), fd_.get());
  }

  bool ShakeHands() {
    return Try([this] { return SSL_connect(ssl_.get()); }) == 1;
  }
  void Send(absl::string_view bytes) {
    if (bytes.empty()) return;
    Try([&] { return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); });
  }
  // All that comes until the other side is silent.
  std::string Receive() {
    std::string all;
    char bytes[4096];
    for (;;) {
      const int n = Try([&] { return SSL_read(ssl_.get(), bytes, sizeof(bytes)); });
      if (n <= 0) return all;
      all.append(bytes, static_cast<size_t>(n));
    }
  }

 private:
  // Repeats `action` while the other side has something to do first.
  template <typename Action>
  int Try(Action action) {
    constexpr int kTurnsMax = 20;
    int result = action();
    for (int i = 0; i < kTurnsMax && result <= 0; ++i) {
      const int error = SSL_get_error(ssl_.get(), result);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) break;
      context_.restart();
      context_.poll();
      result = action();
    }
    return result;
  }

  const UniqueFd fd_;
  boost::asio::io_context& context_;
  gate::SslPtr ssl_;
};

void CheckQuestion(const gate::Question& question) {
  constexpr size_t kBodyBytesMax = 16 << 10;
  constexpr size_t kHeaderBytesMax = 4 << 10;
  CHECK(question.body.size() <= kBodyBytesMax);
  CHECK(question.method.size() + question.target.size() + question.token.size() <= kHeaderBytesMax);
  CHECK(!question.method.empty() && !question.target.empty());
}

}  // namespace

void CheckFrames(absl::string_view bytes) {
  const absl::Status whole = Judge(bytes, std::max<size_t>(bytes.size(), 1));
  for (const size_t piece_bytes : {size_t{1}, size_t{7}, size_t{10}})
    CHECK(Judge(bytes, piece_bytes).code() == whole.code());
  if (whole.ok()) CheckBlocks(bytes);
  CheckRefusal(bytes);
}

void CheckVisit(absl::string_view bytes) {
  static const auto* const tls =
      new gate::TlsContext(*gate::TlsContext::Make(Ours().server, Ours().ca.certificate_pem));
  CHECK(std::signal(SIGPIPE, SIG_IGN) != SIG_ERR);  // as in the daemon
  int pair[2] = {-1, -1};
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
  boost::asio::io_context context(1);
  int question_count = 0;
  int over_count = 0;
  const gate::Visitor::Host host = {
      .context = &context,
      .admit = [](gate::Stream*, const auth::Evidence&) -> absl::Status {
        LOG(FATAL) << "a stranger is admitted";
        return absl::OkStatus();
      },
      .ask =
          [&](const gate::Question& question, gate::OnAnswer on_answer) {
            CheckQuestion(question);
            ++question_count;
            on_answer({.http_status = 200, .body = "certificate\n"});
          },
      .patience = absl::Minutes(1)};
  {
    gate::Stream stream(UniqueFd{pair[0]}, tls->NewConnection());
    const auto visitor = std::make_shared<gate::Visitor>(&host, std::move(stream), "fuzz",
                                                         [&over_count] { ++over_count; });
    visitor->StartTls();
  }
  {
    Stranger stranger(UniqueFd{pair[1]}, &context);
    CHECK(stranger.ShakeHands());
    const size_t middle = bytes.size() / 2;
    stranger.Send(bytes.substr(0, middle));
    stranger.Send(bytes.substr(middle));
    const std::string reply = stranger.Receive();
    CHECK(reply.empty() || absl::StartsWith(reply, "HTTP/1.1 ")) << reply;
    CHECK(reply.find("\nHTTP/1.1 ") == std::string::npos) << reply;
  }
  context.restart();
  context.poll();
  CHECK(question_count <= 1 && over_count == 1) << question_count << " " << over_count;
}

void CheckCertificateRequest(absl::string_view bytes) {
  const absl::StatusOr<std::string> certificate =
      SignCsr(Ours().ca, bytes, {.common_name = "w0", .validity = {absl::Now(), absl::Hours(1)}});
  if (!certificate.ok()) {
    CHECK(absl::IsInvalidArgument(certificate.status())) << certificate.status();
    return;
  }
  CHECK(SubjectOf(*certificate) == "CN = w0") << *certificate;
}

}  // namespace assay::testing
