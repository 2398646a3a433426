// Tokens and the certificates they are exchanged for, against a real daemon.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/pki.h"
#include "common/secret.h"
#include "tests/integration/deployment.h"
#include "tests/integration/fake_worker.h"
#include "tests/integration/service_fixture.h"
#include "tests/support/status_matchers.h"

namespace assay::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

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

  EXPECT_THAT(CommonNameOf(enrolled->certificate_pem), IsOkAndHolds("w7"));
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

}  // namespace
}  // namespace assay::testing
