// A real gRPC server and real clients: what the server sees of each.

#include "server/api/evidence.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/pki.h"
#include "common/rpc/channel.h"
#include "server/auth/certificate_generation.h"
#include "server/auth/unix_listener.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::api {
namespace {

using assay::testing::IsOk;
using assay::testing::TempDir;

// Answers every enrolment with what it saw of the caller.
class Mirror final : public v1::EnrolmentService::CallbackService {
 public:
  explicit Mirror(const auth::PeerTable* peers) : peers_(peers) {}

  grpc::ServerUnaryReactor* Enrol(grpc::CallbackServerContext* context, const v1::EnrolRequest*,
                                  v1::EnrolResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::StatusOr<auth::Evidence> evidence = EvidenceOf(*context, *peers_);
    response->set_ca_pem(
        !evidence.ok()
            ? std::string(evidence.status().message())
            : absl::StrCat(
                  "user=", evidence->user.has_value() ? absl::StrCat(*evidence->user) : "-",
                  " cn=", evidence->certificate_common_name,
                  evidence->certificate_generation == 0
                      ? ""
                      : absl::StrCat(" generation=", evidence->certificate_generation),
                  " token=", evidence->bearer_token));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const auth::PeerTable* const peers_;
};

class EvidenceTest : public ::testing::Test {
 protected:
  EvidenceTest()
      : ca_(*MakeCa("test CA", {absl::Now(), absl::Hours(1)})),
        server_pair_(Issue("coordinator", CertificateKind::kServer)) {
    grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = ca_.certificate_pem;
    tls.pem_key_cert_pairs.push_back({server_pair_.key_pem, server_pair_.certificate_pem});
    grpc::ServerBuilder builder;
    builder.RegisterService(&mirror_);
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port_);
    server_ = builder.BuildAndStart();
    listener_ = *auth::UnixListener::Start(
        {.path = dir_.Path("s"), .peers = &peers_, .on_connection = [this](int fd) {
           grpc::AddInsecureChannelFromFd(server_.get(), fd);
         }});
  }
  ~EvidenceTest() override {
    listener_.reset();
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

  Endpoint Tls() const {
    return {.target = absl::StrCat("127.0.0.1:", port_), .ca_pem = ca_.certificate_pem};
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
  auth::PeerTable peers_{auth::PeerTable::DefaultRange()};
  Mirror mirror_{&peers_};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<auth::UnixListener> listener_;
};

TEST_F(EvidenceTest, SeesTheUserBehindAUnixSocket) {
  const std::string mine = absl::StrCat("user=", geteuid(), " cn= token=");
  EXPECT_EQ(Call({.target = absl::StrCat("unix:", dir_.Path("s"))}), mine);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(Call({.target = absl::StrCat("unix:", dir_.Path("s"))}), mine);
}

TEST_F(EvidenceTest, SeesATokenOverTlsAndOverTheUnixSocket) {
  Endpoint endpoint = Tls();
  endpoint.token = "assay_t";
  EXPECT_EQ(Call(endpoint), "user=- cn= token=assay_t");
  EXPECT_EQ(Call({.target = absl::StrCat("unix:", dir_.Path("s")), .token = "assay_t"}),
            absl::StrCat("user=", geteuid(), " cn= token=assay_t"));
}

TEST_F(EvidenceTest, AClientWithoutACertificateMayConnectAndShowsNothing) {
  EXPECT_EQ(Call(Tls()), "user=- cn= token=");
}

TEST_F(EvidenceTest, SeesTheCommonNameOfACertificateOfOurCa) {
  const CertificateAndKey w0 = Issue("w0", CertificateKind::kClient);
  Endpoint endpoint = Tls();
  endpoint.certificate_pem = w0.certificate_pem;
  endpoint.key_pem = w0.key_pem;
  EXPECT_EQ(Call(endpoint), "user=- cn=w0 token=");
}

TEST_F(EvidenceTest, SeesTheGenerationOfACertificate) {
  const auto call = [this](const std::vector<std::string>& uris) {
    const CertificateAndKey w0 = Issue("w0", CertificateKind::kClient, uris);
    Endpoint endpoint = Tls();
    endpoint.certificate_pem = w0.certificate_pem;
    endpoint.key_pem = w0.key_pem;
    return Call(endpoint);
  };

  EXPECT_EQ(call({auth::GenerationUri(7)}), "user=- cn=w0 generation=7 token=");
  EXPECT_EQ(call({"https://fjord.example/w0", auth::GenerationUri(7)}),
            "user=- cn=w0 generation=7 token=");
  EXPECT_THAT(call({auth::GenerationUri(7), auth::GenerationUri(8)}),
              ::testing::HasSubstr("generation, once"));
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
  const auto channel =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  PrepareCall({}, absl::Seconds(20), &context);
  v1::EnrolResponse response;
  const grpc::Status status =
      v1::EnrolmentService::NewStub(channel)->Enrol(&context, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace assay::api
