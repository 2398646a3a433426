// What a coordinator says of itself to those who look for what is wrong.

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DiagnosticsTest : public ServiceTest {
 protected:
  void SetUp() override {
    ASSERT_THAT(
        deployment_.Start("metrics_address: '127.0.0.1:0' notify { name: 'chat' on: 'run.*' "
                          "command: ['/bin/false', '--header', 'Bearer s3cr3t'] }"),
        IsOk());
    root_.emplace(deployment_.Unix());
    AddTinyDataset(&*root_);
  }
  absl::StatusOr<v1::Diagnostics> Ask(Client* client) {
    v1::GetDiagnosticsRequest request;
    request.set_is_database_checked(true);
    return client->Call(client->admin(), &Admin::GetDiagnostics, request);
  }
};

TEST_F(DiagnosticsTest, AnOperatorGetsTheConfigurationWithoutSecretsAndTheDatabasesState) {
  const absl::StatusOr<v1::Diagnostics> diagnostics = Ask(&*root_);
  ASSERT_THAT(diagnostics, IsOk());
  EXPECT_THAT(
      diagnostics->configuration(),
      AllOf(HasSubstr("ca_key_path:"), HasSubstr("\"/bin/false\""), Not(HasSubstr("s3cr3t"))));
  EXPECT_THAT(diagnostics->left_out(), Contains("notify.command"));
  EXPECT_GE(diagnostics->schema_version(), 15);
  EXPECT_TRUE(diagnostics->is_database_checked());
  EXPECT_THAT(diagnostics->database_problems(), IsEmpty());
  EXPECT_THAT(diagnostics->metrics(), HasSubstr("assay_build_info"));
}

TEST_F(DiagnosticsTest, NobodyElseDoes) {
  for (const char* role : {"public", "submitter", "reviewer"}) {
    Client client = WithToken(role, role == std::string("submitter") ? "lab" : "");
    EXPECT_THAT(Ask(&client), StatusIs(absl::StatusCode::kPermissionDenied)) << role;
  }
}

TEST_F(DiagnosticsTest, EndsOfCertificatesAndTheClockAreTold) {
  FakeWorker worker(deployment_.Worker("w0"), "w0");
  ASSERT_THAT(worker.Synchronize(absl::ZeroDuration()), IsOk());
  const auto info = root_->Call(root_->admin(), &Admin::GetServerInfo, v1::GetServerInfoRequest());
  const auto workers = root_->Call(root_->admin(), &Admin::ListWorkers, v1::ListWorkersRequest());
  ASSERT_THAT(info, IsOk());
  ASSERT_THAT(workers, IsOk());
  // All were made for an hour by the deployment, a moment ago.
  const int64_t now_s = absl::ToUnixSeconds(absl::Now());
  for (const int64_t end_s : {info->certificate_end_time().seconds(),
                              workers->workers(0).certificate_end_time().seconds()}) {
    EXPECT_GT(end_s, now_s);
    EXPECT_LE(end_s, now_s + 3600);
  }
  EXPECT_GT(info->current_time().seconds(), info->start_time().seconds() - 1);
  EXPECT_LE(info->current_time().seconds(), now_s + 1);
}

}  // namespace
}  // namespace assay::testing
