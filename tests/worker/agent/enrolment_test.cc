#include "worker/agent/enrolment.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "assay/v1/worker_service.grpc.pb.h"

#include "common/file.h"
#include "common/pki.h"
#include "tests/support/certificate_subject.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using testing::FakeClock;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

// Signs requests that come with the token "good"; the token works once.
class FakeEnrolment final : public v1::EnrolmentService::Service {
 public:
  FakeEnrolment(const std::string& target, const Clock* clock)
      : clock_(clock), ca_(*MakeCa("test CA", {clock->Wall(), absl::Hours(24 * 3660)})) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status Enrol(grpc::ServerContext*, const v1::EnrolRequest* request,
                     v1::EnrolResponse* response) override {
    // The real coordinator asks for a certificate where there is no token; a socket shows none.
    const bool is_renewal = request->token().empty() && renews;
    if (!is_renewal && (request->token() != "good" || is_used_))
      return {grpc::StatusCode::PERMISSION_DENIED, "unknown or used token"};
    is_used_ = true;
    const absl::StatusOr<std::string> certificate =
        SignCsr(ca_, request->csr_pem(),
                {.common_name = request->worker(), .validity = {clock_->Wall(), lifetime}});
    response->set_certificate_pem(*certificate);
    response->set_ca_pem(ca_.certificate_pem);
    return grpc::Status::OK;
  }

  void ForgetUse() { is_used_ = false; }  // between calls

  absl::Duration lifetime = absl::Hours(24 * 366);  // set before the first call
  bool renews = true;

 private:
  const Clock* const clock_;
  const CertificateAndKey ca_;
  bool is_used_ = false;
  std::unique_ptr<grpc::Server> server_;
};

class EnrolmentTest : public ::testing::Test {
 protected:
  EnrolmentTest() : coordinator_("unix:" + dir_.Path("socket"), &clock_) {
    config_.set_name("w0");
    config_.set_server_address("unix:" + dir_.Path("socket"));
    config_.set_data_directory(dir_.Path("data"));
  }

  const TempDir dir_;
  FakeClock clock_;
  FakeEnrolment coordinator_;
  v1::WorkerConfig config_;
};

TEST_F(EnrolmentTest, TheFirstStartEnrolsAndLaterOnesRemember) {
  ASSERT_THAT(WriteFileAtomic(dir_.Path("token"), "good\n", 0600), IsOk());
  config_.set_enrolment_token_path(dir_.Path("token"));

  const absl::StatusOr<Endpoint> first = LoadOrEnrol(config_, clock_);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(testing::SubjectOf(first->certificate_pem), "CN = w0");
  EXPECT_THAT(CheckPair({first->certificate_pem, first->key_pem}), IsOk());

  const absl::StatusOr<Endpoint> second = LoadOrEnrol(config_, clock_);  // the token is used up
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->certificate_pem, first->certificate_pem);
  EXPECT_EQ(second->key_pem, first->key_pem);
}

TEST_F(EnrolmentTest, NobodyElseMayReadTheKey) {
  config_.set_enrolment_token("good");
  ASSERT_THAT(LoadOrEnrol(config_, clock_), IsOk());
  struct stat key {};
  struct stat directory {};
  ASSERT_EQ(stat(dir_.Path("data/identity/identity.pem").c_str(), &key), 0);
  ASSERT_EQ(stat(dir_.Path("data/identity").c_str(), &directory), 0);
  EXPECT_EQ(key.st_mode & 0777, 0600U);
  EXPECT_EQ(directory.st_mode & 0777, 0700U);
}

TEST_F(EnrolmentTest, ATokenThatIsNotAcceptedIsReported) {
  config_.set_enrolment_token("bad");
  EXPECT_THAT(LoadOrEnrol(config_, clock_),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("unknown or used")));
  EXPECT_FALSE(FileExists(dir_.Path("data/identity/identity.pem")));
}

TEST_F(EnrolmentTest, WithoutCertificateAndTokenTheRemedyIsNamed) {
  ASSERT_THAT(WriteFileAtomic(dir_.Path("ca.crt"), "ca"), IsOk());
  config_.set_server_address("head:7443");
  config_.set_ca_certificate_path(dir_.Path("ca.crt"));
  EXPECT_THAT(LoadOrEnrol(config_, clock_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("enrolment_token_path")));
}

TEST_F(EnrolmentTest, WithoutMungedOnItsNodeAnAgentOfAJobSaysWhatIsMissing) {
  config_.set_server_address("head:7443");
  config_.set_ca_certificate("ca");
  config_.mutable_munge()->set_socket(dir_.Path("none"));
  EXPECT_THAT(LoadOrEnrol(config_, clock_),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(dir_.Path("none")), HasSubstr("munged runs on this host"))));
}

TEST_F(EnrolmentTest, ANodeOfAJobThatIsRefusedEnrolsNoSecondTime) {
  config_.mutable_munge();
  EXPECT_THAT(EnrolAgain(config_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                            HasSubstr("enrols once: release its allocation")));
}

TEST_F(EnrolmentTest, OverALocalSocketNeitherIsNeeded) {
  const absl::StatusOr<Endpoint> endpoint = LoadOrEnrol(config_, clock_);
  ASSERT_THAT(endpoint, IsOk());
  EXPECT_EQ(endpoint->certificate_pem, "");
}

TEST_F(EnrolmentTest, ACertificateThatEndsSoonIsRenewed) {
  config_.set_enrolment_token("good");
  const absl::StatusOr<Endpoint> first = LoadOrEnrol(config_, clock_);
  ASSERT_THAT(first, IsOk());
  clock_.Advance(absl::Hours(24 * 320));

  const absl::StatusOr<Endpoint> second = LoadOrEnrol(config_, clock_);

  ASSERT_THAT(second, IsOk());
  EXPECT_NE(second->certificate_pem, first->certificate_pem);
  EXPECT_THAT(CheckPair({second->certificate_pem, second->key_pem}), IsOk());
}

TEST_F(EnrolmentTest, AnAgentThatRunsForMonthsKnowsWhenToRenew) {
  EXPECT_EQ(RenewalTime(Endpoint{}, clock_), absl::InfiniteFuture()) << "no certificate";
  Endpoint endpoint;
  endpoint.certificate_pem = MakeCa("any", {clock_.Wall(), absl::Hours(24 * 366)})->certificate_pem;
  const absl::Duration left = RenewalTime(endpoint, clock_) - clock_.Wall();
  EXPECT_EQ(absl::ToInt64Hours(left + absl::Minutes(1)), 24 * (366 - 60));

  clock_.Advance(absl::Hours(24 * 320));

  EXPECT_EQ(RenewalTime(endpoint, clock_), clock_.Wall() + absl::Hours(1))
      << "overdue, but the coordinator is not asked all the time";
}

TEST_F(EnrolmentTest, ACertificateThatCannotBeRenewedServesToItsEnd) {
  config_.set_enrolment_token("good");
  const absl::StatusOr<Endpoint> first = LoadOrEnrol(config_, clock_);
  ASSERT_THAT(first, IsOk());
  coordinator_.renews = false;
  clock_.Advance(absl::Hours(24 * 320));

  const absl::StatusOr<Endpoint> second = LoadOrEnrol(config_, clock_);

  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->certificate_pem, first->certificate_pem);
}

TEST_F(EnrolmentTest, ARefusedCertificateIsReplacedForANewTokenOnly) {
  config_.set_enrolment_token_path(dir_.Path("token"));
  ASSERT_THAT(WriteFileAtomic(dir_.Path("token"), "good\n", 0600), IsOk());
  const absl::StatusOr<Endpoint> first = LoadOrEnrol(config_, clock_);
  ASSERT_THAT(first, IsOk());

  EXPECT_THAT(EnrolAgain(config_),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("assay admin enrol w0")))
      << "the token was used";
  ASSERT_THAT(RemoveTree(dir_.Path("token")), IsOk());
  EXPECT_THAT(EnrolAgain(config_),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("enrolment_token_path")));
  EXPECT_EQ(LoadOrEnrol(config_, clock_)->certificate_pem, first->certificate_pem);

  coordinator_.ForgetUse();
  ASSERT_THAT(WriteFileAtomic(dir_.Path("token"), "good\n", 0600), IsOk());
  const absl::StatusOr<Endpoint> second = EnrolAgain(config_);
  ASSERT_THAT(second, IsOk());
  EXPECT_NE(second->certificate_pem, first->certificate_pem);
  EXPECT_NE(second->key_pem, first->key_pem);
  EXPECT_EQ(LoadOrEnrol(config_, clock_)->certificate_pem, second->certificate_pem);
}

TEST_F(EnrolmentTest, AnEndedCertificateIsNotUsed) {
  config_.set_enrolment_token("good");
  ASSERT_THAT(LoadOrEnrol(config_, clock_), IsOk());
  clock_.Advance(absl::Hours(24 * 367));
  EXPECT_THAT(LoadOrEnrol(config_, clock_), StatusIs(absl::StatusCode::kPermissionDenied));
}

}  // namespace
}  // namespace assay::agent
