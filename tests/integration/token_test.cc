// Tokens and the certificates they are exchanged for, against a real daemon.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "common/file.h"
#include "common/pki.h"
#include "common/process.h"
#include "common/secret.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"
#include "tests/integration/service_fixture.h"
#include "tests/support/certificate_subject.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(ServiceTest, ARevokedTokenIsRefusedFromTheNextCallOn) {
  Client reviewer = WithToken("reviewer");
  const auto info = reviewer.Call(reviewer.admin(), &Admin::GetServerInfo, {});
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->role(), "reviewer");
  EXPECT_EQ(info->data_directory(), "");

  v1::RevokeTokenRequest revoke;
  revoke.set_name(root_->Call(root_->admin(), &Admin::ListTokens, {})->tokens(0).name());
  ASSERT_THAT(root_->Call(root_->admin(), &Admin::RevokeToken, revoke), IsOk());
  EXPECT_THAT(reviewer.Call(reviewer.admin(), &Admin::GetServerInfo, {}),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("revoked")));
}

TEST_F(ServiceTest, ARevokedTokenEndsTheStreamsOfItsBearer) {
  Client reviewer = WithToken("reviewer");
  grpc::ClientContext context;
  PrepareCall(reviewer.endpoint(), absl::Minutes(1), &context);
  v1::WatchEventsRequest request;
  request.set_follow(true);
  const auto reader = reviewer.submission().WatchEvents(&context, request);
  v1::Event event;
  ASSERT_TRUE(reader->Read(&event));

  v1::RevokeTokenRequest revoke;
  revoke.set_name(root_->Call(root_->admin(), &Admin::ListTokens, {})->tokens(0).name());
  ASSERT_THAT(root_->Call(root_->admin(), &Admin::RevokeToken, revoke), IsOk());
  while (reader->Read(&event)) {
  }

  EXPECT_THAT(FromGrpc(reader->Finish()),
              AnyOf(StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("revoked")),
                    StatusIs(absl::StatusCode::kUnavailable)));
}

TEST_F(ServiceTest, AnEnrolmentTokenWorksOnceForItsWorker) {
  const std::string token = EnrolmentToken("w7");
  EXPECT_THAT(deployment_.AsEnrolled("w8", token), StatusIs(absl::StatusCode::kPermissionDenied));
  const absl::StatusOr<Endpoint> enrolled = deployment_.AsEnrolled("w7", token);
  ASSERT_THAT(enrolled, IsOk());
  EXPECT_THAT(deployment_.AsEnrolled("w7", token),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("used")));

  EXPECT_EQ(SubjectOf(enrolled->certificate_pem), "CN = w7");
  FakeWorker worker(*enrolled, "w7");
  EXPECT_THAT(worker.Synchronize(), IsOk());
  // It renews without a token, under its own name only.
  Client w7(*enrolled);
  v1::EnrolRequest renewal;
  renewal.set_csr_pem(MakeKeyAndCsr("whatever")->csr_pem);
  renewal.set_worker("w7");
  EXPECT_THAT(w7.Call(w7.enrolment(), &Enrolment::Enrol, renewal), IsOk());
  renewal.set_worker("w8");
  EXPECT_THAT(w7.Call(w7.enrolment(), &Enrolment::Enrol, renewal),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(ServiceTest, AnEnrolmentTokenIsNoIdentityNorAnAccessTokenAnEnrolment) {
  EXPECT_THAT(deployment_.AsBearer(EnrolmentToken("w7")),
              StatusIs(absl::StatusCode::kUnauthenticated));
  v1::CreateTokenRequest request;
  request.set_request_id(MakeUuid());
  request.mutable_token()->set_kind(v1::Token::ACCESS);
  request.mutable_token()->set_role("operator");
  request.mutable_token()->set_principal("w7");
  const auto created = root_->Call(root_->admin(), &Admin::CreateToken, request);
  EXPECT_THAT(deployment_.AsEnrolled("w7", created->secret()),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

// The program itself, as a person runs it beside another host's coordinator.
class CommandLineTokenTest : public ServiceTest {
 protected:
  // The exit code of `assay entry list` over TCP, and what it says.
  int List(const std::string& token, std::string* output) {
    const char* const folder = std::getenv("ASSAY_BIN_DIR");
    const std::string path = deployment_.dir().Path("assay.out");
    EXPECT_THAT(RemoveTree(path), IsOk());
    const auto process = Spawn(
        {.argv = {JoinPath(folder == nullptr ? "build/dev/bin" : folder, "assay"), "entry", "list",
                  "--server", deployment_.Tls().target, "--ca", deployment_.dir().Path("ca.crt")},
         .environment = {"ASSAY_TOKEN=" + token, "HOME=" + deployment_.dir().Path("home"),
                         "XDG_CACHE_HOME=", "XDG_CONFIG_HOME="},
         .output_path = path});
    EXPECT_THAT(process, IsOk());
    const absl::StatusOr<int> code = WaitForExit(*process, absl::Minutes(1));
    *output = ReadFile(path).value_or("");
    return code.value_or(-1);
  }

  std::string AccessToken() {
    v1::CreateTokenRequest request;
    request.set_request_id(MakeUuid());
    request.mutable_token()->set_kind(v1::Token::ACCESS);
    request.mutable_token()->set_role("reviewer");
    request.mutable_token()->set_principal("rita");
    return root_->Call(root_->admin(), &Admin::CreateToken, request)->secret();
  }
};

TEST_F(CommandLineTokenTest, ATokenBecomesACertificateThatIsKept) {
  const std::string token = AccessToken();
  const std::string kept = deployment_.dir().Path("home/.cache/assay/certificates");
  std::string output;
  ASSERT_EQ(List(token, &output), 0) << output;
  const auto files = ListDirectory(kept);
  ASSERT_THAT(files, IsOkAndHolds(SizeIs(1)));
  struct stat info {};
  ASSERT_EQ(stat(JoinPath(kept, files->front()).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  const std::string first = *ReadFile(JoinPath(kept, files->front()));
  EXPECT_THAT(first, Not(HasSubstr(token)));

  ASSERT_EQ(List(token, &output), 0) << output;
  EXPECT_EQ(*ReadFile(JoinPath(kept, files->front())), first) << "asked for once";
  ASSERT_THAT(WriteFileAtomic(JoinPath(kept, files->front()), "damaged", 0600), IsOk());
  EXPECT_EQ(List(token, &output), 0) << output;
}

TEST_F(CommandLineTokenTest, WithoutAUsableTokenItSaysWhatToDo) {
  std::string output;
  EXPECT_NE(List("", &output), 0);
  EXPECT_THAT(output, HasSubstr("assay admin token create"));
  EXPECT_NE(List("assay_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", &output), 0);
  EXPECT_THAT(output, HasSubstr("unknown token"));
}

}  // namespace
}  // namespace assay::testing
