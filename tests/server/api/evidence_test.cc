// A real gRPC server behind a real gate, and real clients: what the server sees of each.

#include "server/api/evidence.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/pki.h"
#include "common/rpc/certificate_exchange.h"
#include "common/rpc/channel.h"
#include "server/auth/certificate_generation.h"
#include "server/auth/certificate_token.h"
#include "server/gate/gate.h"
#include "server/gate/stream.h"
#include "tests/support/in_time.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::api {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using assay::testing::TempDir;

using SslContext = std::unique_ptr<SSL_CTX, OpenSslFree<SSL_CTX_free>>;

// Answers every enrolment with what it saw of the caller.
class Mirror final : public v1::EnrolmentService::CallbackService {
 public:
  explicit Mirror(const gate::ConnectionTable* connections) : connections_(connections) {}

  grpc::ServerUnaryReactor* Enrol(grpc::CallbackServerContext* context, const v1::EnrolRequest*,
                                  v1::EnrolResponse* response) override {
    if (hold) return hold(context);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::StatusOr<auth::Evidence> evidence = EvidenceOf(*context, *connections_);
    response->set_ca_pem(
        !evidence.ok()
            ? std::string(evidence.status().message())
            : absl::StrCat(
                  "user=", evidence->user.has_value() ? absl::StrCat(*evidence->user) : "-",
                  " cn=", evidence->certificate_common_name,
                  evidence->certificate_generation == 0
                      ? ""
                      : absl::StrCat(" generation=", evidence->certificate_generation),
                  evidence->certificate_token_sha256.empty()
                      ? ""
                      : absl::StrCat(" of=", evidence->certificate_token_sha256),
                  " token=", evidence->bearer_token));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  // Set before the call: answers in place of the mirror.
  std::function<grpc::ServerUnaryReactor*(grpc::CallbackServerContext*)> hold;

 private:
  const gate::ConnectionTable* const connections_;
};

class EvidenceTest : public ::testing::Test {
 protected:
  EvidenceTest()
      : ca_(*MakeCa("test CA", {absl::Now(), absl::Hours(1)})),
        server_pair_(Issue("coordinator", CertificateKind::kServer)) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&mirror_);
    server_ = builder.BuildAndStart();
    gate_ = *gate::Gate::Start(
        {.tcp_address = "127.0.0.1:0",
         .ca_pem = ca_.certificate_pem,
         .server_certificate = server_pair_,
         .unix_socket_path = dir_.Path("s"),
         .connections = &connections_,
         .identify = [this](const auth::Evidence&) -> absl::StatusOr<auth::Identity> {
           if (is_revoked_) return absl::UnauthenticatedError("revoked: 100 % \"sure\"");
           return auth::Identity{.role = auth::Role::kWorker};
         },
         .on_connection = [this](int fd) { grpc::AddInsecureChannelFromFd(server_.get(), fd); },
         .on_question =
             [](const gate::Question& question, gate::OnAnswer on_answer) {
               on_answer({.http_status = 403,
                          .body = absl::StrCat(question.method, " ", question.target, " ",
                                               question.token, " ", question.body, "\n")});
             }});
  }
  ~EvidenceTest() override {
    gate_->StopListening();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  CertificateAndKey Issue(const std::string& name, CertificateKind kind,
                          const std::vector<std::string>& uris = {}) {
    const KeyAndCsr request = *MakeKeyAndCsr(name);
    return {*SignCsr(ca_, request.csr_pem,
                     {.common_name = name,
                      .subject_names = {"localhost", "127.0.0.1"},
                      .uris = uris,
                      .kind = kind,
                      .validity = {absl::Now(), absl::Hours(1)}}),
            request.key_pem};
  }

  Endpoint Tls() const { return {.target = gate_->tcp_address(), .ca_pem = ca_.certificate_pem}; }

  Endpoint As(const std::string& name, const std::vector<std::string>& uris = {}) {
    const CertificateAndKey pair = Issue(name, CertificateKind::kClient, uris);
    Endpoint endpoint = Tls();
    endpoint.certificate_pem = pair.certificate_pem;
    endpoint.key_pem = pair.key_pem;
    return endpoint;
  }

  UniqueFd Connect() const {
    const int port = std::stoi(Tls().target.substr(Tls().target.rfind(':') + 1));
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }

  // What the server saw, or the error's code.
  std::string Call(const Endpoint& endpoint) {
    const auto channel = MakeChannel(endpoint);
    EXPECT_THAT(channel, IsOk());
    grpc::ClientContext context;
    PrepareCall(endpoint, absl::Seconds(20), &context);
    v1::EnrolResponse response;
    const grpc::Status status =
        v1::EnrolmentService::NewStub(*channel)->Enrol(&context, {}, &response);
    return status.ok() ? response.ca_pem() : absl::StrCat("error ", status.error_code());
  }

  TempDir dir_;
  CertificateAndKey ca_;
  CertificateAndKey server_pair_;
  gate::ConnectionTable connections_{gate::ConnectionTable::DefaultRange()};
  Mirror mirror_{&connections_};
  std::atomic<bool> is_revoked_ = false;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<gate::Gate> gate_;
};

TEST_F(EvidenceTest, SeesTheUserBehindAUnixSocket) {
  const std::string mine = absl::StrCat("user=", geteuid(), " cn= token=");
  EXPECT_EQ(Call({.target = absl::StrCat("unix:", dir_.Path("s"))}), mine);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(Call({.target = absl::StrCat("unix:", dir_.Path("s"))}), mine);
}

TEST_F(EvidenceTest, SeesATokenOverTheUnixSocket) {
  EXPECT_EQ(Call({.target = absl::StrCat("unix:", dir_.Path("s")), .token = "assay_t"}),
            absl::StrCat("user=", geteuid(), " cn= token=assay_t"));
}

TEST_F(EvidenceTest, ATokenBesideACertificateIsRefused) {
  Endpoint endpoint = As("w0");
  endpoint.token = "assay_t";
  EXPECT_THAT(Call(endpoint), ::testing::HasSubstr("beside a client certificate"));
}

TEST_F(EvidenceTest, AClientWithoutACertificateDoesNotReachGrpc) {
  EXPECT_EQ(Call(Tls()), "error 14");
  Endpoint bearer = Tls();
  bearer.token = "assay_t";
  EXPECT_EQ(Call(bearer), "error 14");
}

TEST_F(EvidenceTest, WhoIsKnownAndNotAdmittedIsToldWhy) {
  is_revoked_ = true;
  for (const Endpoint& endpoint : {As("w0"), Endpoint{.target = "unix:" + dir_.Path("s")}}) {
    grpc::ClientContext context;
    PrepareCall(endpoint, absl::Seconds(20), &context);
    v1::EnrolResponse response;
    const grpc::Status status =
        v1::EnrolmentService::NewStub(*MakeChannel(endpoint))->Enrol(&context, {}, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(status.error_message(), "revoked: 100 % \"sure\"");
  }
}

TEST_F(EvidenceTest, StrangersAreAskedAndAnsweredOverHttps) {
  Endpoint endpoint = Tls();
  endpoint.token = "assay_t";
  EXPECT_THAT(ExchangeForCertificate({.endpoint = endpoint, .path = "/v1/x", .csr_pem = "CSR"}),
              StatusIs(absl::StatusCode::kPermissionDenied, "POST /v1/x assay_t CSR"));
  EXPECT_THAT(ExchangeForCertificate(
                  {.endpoint = endpoint, .path = "/v1/x", .csr_pem = std::string(17 << 10, 'x')}),
              StatusIs(absl::StatusCode::kUnknown, ::testing::HasSubstr("16 KiB")));
  endpoint.ca_pem = MakeCa("other CA", {absl::Now(), absl::Hours(1)})->certificate_pem;
  EXPECT_THAT(ExchangeForCertificate({.endpoint = endpoint, .path = "/v1/x", .csr_pem = "CSR"}),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(EvidenceTest, AClientThatOffersBothProtocolsIsAskedForNothing) {
  // As curl and browsers do.
  static constexpr unsigned char kBoth[] = "\x02h2\x08http/1.1";
  const SslContext context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_alpn_protos(context.get(), kBoth, sizeof(kBoth) - 1);
  const UniqueFd fd = Connect();
  const gate::SslPtr ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), fd.get());
  ASSERT_EQ(SSL_connect(ssl.get()), 1);
  const std::string request = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
  ASSERT_GT(SSL_write(ssl.get(), request.data(), static_cast<int>(request.size())), 0);
  std::array<char, 4096> buffer{};
  ASSERT_GT(SSL_read(ssl.get(), buffer.data(), static_cast<int>(buffer.size())), 0);
  EXPECT_THAT(std::string(buffer.data()), ::testing::HasSubstr("GET /healthz"));
}

TEST_F(EvidenceTest, SilentStrangersDoNotKeepOthersOut) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 300; ++i)
    silent.push_back(Connect());
  EXPECT_EQ(Call(As("w0")), "user=- cn=w0 token=");
}

// gRPC closes a connection's descriptor only after the last of its calls, so that the number means
// the same caller for as long as a call can ask. The table of connections is built on it.
TEST_F(EvidenceTest, RevocationEndsAConnectionWhoseNumberOutlivesItsCalls) {
  std::promise<void> begun;
  std::promise<void> cancelled;
  std::string peer;
  class Held final : public grpc::ServerUnaryReactor {
   public:
    explicit Held(std::promise<void>* cancelled) : cancelled_(cancelled) {}
    void OnCancel() override { cancelled_->set_value(); }
    void OnDone() override { delete this; }

   private:
    std::promise<void>* const cancelled_;
  };
  grpc::ServerUnaryReactor* held = nullptr;
  mirror_.hold = [&](grpc::CallbackServerContext* context) {
    peer = context->peer();
    held = new Held(&cancelled);
    begun.set_value();
    return held;
  };
  std::thread client([&] { EXPECT_EQ(Call(As("w0")), "error 14"); });
  assay::testing::InTime(begun.get_future());

  is_revoked_ = true;
  assay::testing::InTime(cancelled.get_future());
  client.join();

  const int number = std::stoi(peer.substr(peer.find(':') + 1));
  EXPECT_NE(fcntl(number, F_GETFD), -1) << "closed before its call has ended";
  EXPECT_EQ(connections_.Find(peer)->certificate_common_name, "w0");
  held->Finish(grpc::Status::OK);
}

TEST_F(EvidenceTest, SeesTheCommonNameOfACertificateOfOurCa) {
  EXPECT_EQ(Call(As("w0")), "user=- cn=w0 token=");
}

TEST_F(EvidenceTest, SeesTheGenerationOfACertificate) {
  const auto call = [this](const std::vector<std::string>& uris) { return Call(As("w0", uris)); };

  EXPECT_EQ(call({auth::GenerationUri(7)}), "user=- cn=w0 generation=7 token=");
  EXPECT_EQ(call({"https://fjord.example/w0", auth::GenerationUri(7)}),
            "user=- cn=w0 generation=7 token=");
  EXPECT_EQ(call({auth::GenerationUri(7), auth::GenerationUri(8)}), "error 16");
  const std::string hash(64, 'a');
  EXPECT_EQ(call({auth::TokenUri(hash)}), absl::StrCat("user=- cn=w0 of=", hash, " token="));
  EXPECT_EQ(call({auth::TokenUri("abc")}), "error 16");
}

TEST_F(EvidenceTest, RefusesACertificateOfAnotherCaOrOfAServer) {
  const CertificateAndKey real_ca = ca_;
  ca_ = *MakeCa("test CA", {absl::Now(), absl::Hours(1)});
  const CertificateAndKey forged = Issue("w0", CertificateKind::kClient);
  ca_ = real_ca;
  Endpoint endpoint = Tls();
  endpoint.certificate_pem = forged.certificate_pem;
  endpoint.key_pem = forged.key_pem;
  EXPECT_EQ(Call(endpoint), "error 14");

  endpoint.certificate_pem = server_pair_.certificate_pem;
  endpoint.key_pem = server_pair_.key_pem;
  EXPECT_EQ(Call(endpoint), "error 14");
}

TEST_F(EvidenceTest, PlainTcpIsNotSpoken) {
  const auto channel = grpc::CreateChannel(Tls().target, grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  PrepareCall({}, absl::Seconds(20), &context);
  v1::EnrolResponse response;
  const grpc::Status status =
      v1::EnrolmentService::NewStub(channel)->Enrol(&context, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace assay::api
