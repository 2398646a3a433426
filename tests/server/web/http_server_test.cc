// The HTTP server against clients that keep no rule: over TLS, on a port of this machine.

#include "server/web/http_server.h"

#include <atomic>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/random.h"
#include "tests/support/http_get.h"
#include "tests/support/in_time.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tls_client.h"

namespace assay::web {
namespace {

using assay::testing::HttpAnswer;
using assay::testing::HttpGet;
using assay::testing::InTime;
using assay::testing::IsOk;
using assay::testing::StatusIs;
using assay::testing::TlsClient;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

CertificateAndKey MakePair(const std::string& name = "localhost") {
  const Validity validity{.now = absl::Now(), .lifetime = absl::Hours(1)};
  const CertificateAndKey ca = *MakeCa("Test Authority", validity);
  const KeyAndCsr made = *MakeKeyAndCsr(name);
  return {.certificate_pem = *SignCsr(ca, made.csr_pem,
                                      {.common_name = name,
                                       .subject_names = {name},
                                       .kind = CertificateKind::kServer,
                                       .validity = validity}),
          .key_pem = made.key_pem};
}

// Pieces without end, each as large as said; or as many as said.
class Pieces final : public ChunkSource {
 public:
  Pieces(std::shared_ptr<Exchange> exchange, size_t bytes, int count)
      : exchange_(std::move(exchange)), bytes_(bytes), count_(count) {}
  void Next() override {
    if (asked_++ == count_) return exchange_->Finish("end\n");
    exchange_->Write(std::string(bytes_, 'p'));
  }
  void Gone() override {
    exchange_.reset();  // as a source must, or the connection would stay
    gone_.set_value();
  }
  int asked() const { return asked_; }
  std::future<void> gone() { return gone_.get_future(); }

 private:
  std::shared_ptr<Exchange> exchange_;
  const size_t bytes_;
  const int count_;
  std::atomic<int> asked_ = 0;
  std::promise<void> gone_;
};

// Echoes what it understood: method, target, headers' number, body's size. Some targets do more.
class Echo final : public HttpHandler {
 public:
  void Handle(std::shared_ptr<Exchange> exchange) override {
    ++count;
    const HttpRequest& request = exchange->request();
    if (request.target == "/forget") return;
    if (request.target == "/hold") {
      held.set_value(std::move(exchange));
      return;
    }
    if (request.target == "/large") return exchange->Send({.body = std::string(32 << 20, 'x')});
    if (request.target == "/pieces" || request.target == "/endless") {
      pieces = request.target == "/pieces" ? std::make_shared<Pieces>(exchange, 5, 3)
                                           : std::make_shared<Pieces>(exchange, 64 << 10, -1);
      return exchange->Open({.headers = {{"Content-Type", "text/plain"}}}, pieces, ": \n\n");
    }
    exchange->Send({.body = absl::StrCat(request.method, " ", request.target, " ",
                                         request.body.size(), "\n")});
  }
  std::atomic<int> count = 0;
  std::promise<std::shared_ptr<Exchange>> held;
  std::shared_ptr<Pieces> pieces;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpLimits limits = {}) {
    server_ = *HttpServer::Start(
        {.listen_address = "127.0.0.1:0", .certificate = MakePair(), .limits = limits}, &echo_);
  }
  // What comes back to these bytes, until the server closes.
  std::string Ask(absl::string_view bytes) {
    TlsClient client(server_->address());
    client.Send(bytes);
    return client.ReadToEnd();
  }
  Echo echo_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOneRequestAfterTheOther) {
  Start();
  TlsClient client(server_->address());
  ASSERT_TRUE(client.is_connected());
  for (int i = 0; i < 3; ++i) {
    client.Send("GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(client.ReadResponse(),
                AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("GET /a?b 0\n")));
  }
  // Two at once, the second one in pieces.
  client.Send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Le");
  EXPECT_THAT(client.ReadResponse(), EndsWith("GET /1 0\n"));
  for (const char* piece : {"ngth", ": 3\r", "\n\r", "\nab", "c"})
    client.Send(piece);
  EXPECT_THAT(client.ReadResponse(), EndsWith("POST /2 3\n"));
  EXPECT_EQ(server_->counts().requests, 5);
}

TEST_F(HttpServerTest, OfHeadTheLengthComesAndNoBody) {
  Start();
  const std::string answer = Ask("HEAD /abc HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");

  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 12\r\n"),
                            EndsWith("\r\n\r\n")));
}

TEST_F(HttpServerTest, AClientThatWaitsForLeaveGetsIt) {
  Start();
  TlsClient client(server_->address());
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");

  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("ab");
  EXPECT_THAT(client.ReadResponse(), EndsWith("POST / 2\n"));
}

TEST_F(HttpServerTest, WhatBreaksARuleIsRefusedAndTheConnectionEnds) {
  Start();
  const std::string line = "GET / HTTP/1.1\r\n";
  const struct {
    const char* name;
    std::string bytes;
    const char* status;
  } cases[] = {
      {"no HTTP", "\x16\x03\x01 hello\r\n\r\n", "400"},
      {"no host", line + "\r\n", "400"},
      {"two hosts", line + "Host: a\r\nHost: b\r\n\r\n", "400"},
      {"length twice",
       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
      {"length and chunks",
       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: "
       "chunked\r\n\r\n0\r\n\r\n",
       "400"},
      {"negative length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"},
      {"bad chunk", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
       "400"},
      {"absolute target", "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"asterisk", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"space before colon", line + "Host : x\r\n\r\n", "400"},
      {"packed body",
       "POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", "415"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"},
      {"large header", line + "Host: x\r\nA: " + std::string(20 << 10, 'a') + "\r\n\r\n", "431"},
      {"large body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n", "413"},
  };
  for (const auto& c : cases) {
    const int before = echo_.count;
    const std::string answer = Ask(c.bytes);
    EXPECT_THAT(answer, StartsWith(absl::StrCat("HTTP/1.1 ", c.status, " "))) << c.name;
    EXPECT_THAT(answer, HasSubstr("Connection: close")) << c.name;
    EXPECT_EQ(echo_.count, before) << c.name;
  }
}

TEST_F(HttpServerTest, ABodyOfManyChunksIsCutAtItsLimit) {
  Start({.body_bytes_max = 1000});
  std::string bytes = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i)
    absl::StrAppend(&bytes, "64\r\n", std::string(100, 'c'), "\r\n");

  EXPECT_THAT(Ask(bytes), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(echo_.count, 0);
}

// Random changes of good requests, and random bytes: whatever comes, the server goes on.
TEST_F(HttpServerTest, SurvivesRandomRequests) {
  Start();
  constexpr uint64_t kSeed = 20261124;
  RecordProperty("seed", std::to_string(kSeed));
  const std::string good =
      "POST /entries/e-4?x=%20y HTTP/1.1\r\nHost: localhost\r\nCookie: __Host-assay=0123\r\n"
      "Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"name\":\"x\"}";
  for (uint32_t round = 0; round < 300; ++round) {
    const Stream random(kSeed, Purpose::kTest, round);
    std::string bytes = good;
    const uint32_t change_count = random.Below(0, 12);
    for (uint32_t i = 1; i <= change_count; ++i) {
      const uint32_t at = random.Below(3 * i, static_cast<uint32_t>(bytes.size()));
      switch (random.Below(3 * i + 1, 3)) {
        case 0:
          bytes[at] = static_cast<char>(random.Below(3 * i + 2, 256));
          break;
        case 1:
          bytes.erase(at, 1 + random.Below(3 * i + 2, 8));
          break;
        default:
          bytes.insert(
              at, bytes.substr(random.Below(3 * i + 2, static_cast<uint32_t>(bytes.size())), 9));
      }
      if (bytes.empty()) bytes = "\r\n";
    }
    TlsClient client(server_->address());
    ASSERT_TRUE(client.is_connected()) << "seed " << kSeed << " round " << round;
    client.Send(bytes);
    // Gone at once: what is not whole is not waited for.
  }

  EXPECT_THAT(Ask("GET /after HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              EndsWith("GET /after 0\n"));
}

TEST_F(HttpServerTest, AForgottenRequestIsAnswered) {
  Start();
  EXPECT_THAT(Ask("GET /forget HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, AnOpenResponseComesInPieces) {
  Start();
  const std::string answer = Ask("GET /pieces HTTP/1.1\r\nHost: x\r\n\r\n");

  EXPECT_THAT(answer, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(
      answer,
      EndsWith("\r\n\r\n5\r\nppppp\r\n5\r\nppppp\r\n5\r\nppppp\r\n4\r\nend\n\r\n0\r\n\r\n"));
}

TEST_F(HttpServerTest, ASlowClientIsAskedForNoMoreThanItTakes) {
  Start();
  TlsClient slow(server_->address(), /*receive_bytes=*/4096);
  slow.Send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(slow.ReadUntil("\r\n\r\n"), HasSubstr("200 OK"));
  // Others are served while it takes nothing.
  for (int i = 0; i < 20; ++i)
    EXPECT_THAT(Ask("GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                EndsWith("GET /x 0\n"));
  // What fits into the kernel's buffers between the two, and one piece: 6 MiB at the most here.
  EXPECT_LT(echo_.pieces->asked(), 100);
  EXPECT_EQ(server_->counts().open_responses, 1);
}

TEST_F(HttpServerTest, AClientThatGoesEndsItsSource) {
  Start();
  {
    TlsClient client(server_->address());
    client.Send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
    client.ReadUntil("\r\n\r\n");
  }

  InTime(echo_.pieces->gone());
}

TEST_F(HttpServerTest, AClientThatTakesNothingIsCut) {
  Start({.stall = absl::Milliseconds(50)});
  TlsClient slow(server_->address(), /*receive_bytes=*/4096);
  slow.Send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
  slow.ReadUntil("\r\n\r\n");

  InTime(echo_.pieces->gone());
}

TEST_F(HttpServerTest, WhoSaysNothingIsCut) {
  Start({.idle = absl::Milliseconds(50)});
  TlsClient client(server_->address());
  ASSERT_TRUE(client.is_connected());
  client.Send("GET / HT");

  EXPECT_THAT(client.ReadToEnd(), IsEmpty());
}

TEST_F(HttpServerTest, ConnectionsOfOneAddressAreBounded) {
  Start({.connections_per_address_max = 2});
  TlsClient first(server_->address());
  TlsClient second(server_->address());
  const TlsClient third(server_->address());

  EXPECT_TRUE(first.is_connected());
  EXPECT_TRUE(second.is_connected());
  EXPECT_FALSE(third.is_connected());
  EXPECT_EQ(server_->counts().refused_connections, 1);
}

TEST_F(HttpServerTest, ARenewedCertificateGreetsThoseWhoComeAfterwards) {
  Start();
  TlsClient before(server_->address());
  ASSERT_THAT(server_->Renew(MakePair("renewed.example")), IsOk());

  EXPECT_EQ(TlsClient(server_->address()).server_name(), "/CN=renewed.example");
  before.Send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(before.ReadResponse(), EndsWith("GET /a 0\n"));
  EXPECT_EQ(before.server_name(), "/CN=localhost");

  CertificateAndKey wrong = MakePair("other.example");
  wrong.key_pem = "no key";
  EXPECT_THAT(server_->Renew(wrong), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(TlsClient(server_->address()).server_name(), "/CN=renewed.example");
}

TEST_F(HttpServerTest, EndsAfterTheAnswersThatAreOnTheirWay) {
  Start();
  auto held = echo_.held.get_future();
  TlsClient idle(server_->address());
  TlsClient waiting(server_->address());
  waiting.Send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  std::shared_ptr<Exchange> exchange = InTime(std::move(held));

  std::thread shutdown([this] { server_->Shutdown(absl::Minutes(1)); });
  EXPECT_THAT(idle.ReadToEnd(), IsEmpty());
  exchange->Send({.body = "last\n"});
  exchange.reset();

  EXPECT_THAT(waiting.ReadToEnd(), AllOf(HasSubstr("Connection: close"), EndsWith("last\n")));
  shutdown.join();
  EXPECT_FALSE(TlsClient(server_->address()).is_connected());
}

TEST_F(HttpServerTest, EndsOpenResponsesAndWhoeverIsTooSlow) {
  Start();
  TlsClient open(server_->address());
  open.Send("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
  open.ReadUntil("\r\n\r\n");
  TlsClient slow(server_->address(), 4096);
  slow.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  slow.ReadUntil("\r\n\r\n");

  server_->Shutdown(absl::Milliseconds(100));

  InTime(echo_.pieces->gone());
  EXPECT_EQ(server_->counts().connections, 0);
}

// Whole responses, long ones, and open ones, by a client that verifies that each is whole.
TEST_F(HttpServerTest, SpeaksPlainHttpWhereThatIsWanted) {
  server_ = *HttpServer::Start({.listen_address = "127.0.0.1:0", .is_plain = true}, &echo_);
  const std::string url = absl::StrCat("http://", server_->address());

  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<HttpAnswer> answer = HttpGet(url + "/a?b");
    ASSERT_THAT(answer, IsOk());
    EXPECT_EQ(answer->body, "GET /a?b 0\n");
  }
  EXPECT_EQ(HttpGet(url + "/large").value_or(HttpAnswer{}).body.size(), size_t{32 << 20});
  EXPECT_EQ(HttpGet(url + "/pieces").value_or(HttpAnswer{}).body, "pppppppppppppppend\n");
  EXPECT_EQ(HttpGet(url + "/forget").value_or(HttpAnswer{}).status, 500);
  EXPECT_FALSE(TlsClient(server_->address()).is_connected());
  server_->Shutdown(absl::Seconds(10));
  EXPECT_EQ(server_->counts().connections, 0);
  EXPECT_THAT(HttpGet(url + "/a"), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(HttpServerStartTest, SaysWhatCannotBe) {
  Echo echo;
  const CertificateAndKey pair = MakePair();
  const auto start = [&](const std::string& address, const CertificateAndKey& with) {
    return HttpServer::Start({.listen_address = address, .certificate = with}, &echo).status();
  };
  for (const char* address : {"", "x", "localhost:", "localhost:70000"})
    EXPECT_THAT(start(address, pair), StatusIs(absl::StatusCode::kInvalidArgument)) << address;
  EXPECT_THAT(start("127.0.0.1:0", {.certificate_pem = "x", .key_pem = "y"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("certificate")));
  const auto first =
      HttpServer::Start({.listen_address = "127.0.0.1:0", .certificate = pair}, &echo);
  EXPECT_THAT(start((*first)->address(), pair),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("does another program?")));
}

}  // namespace
}  // namespace assay::web
