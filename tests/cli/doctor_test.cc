// What the doctor says of a coordinator's nodes.

#include <csignal>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "cli/coordinator/doctor_backends.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"
#include "tests/support/https_server.h"
#include "tests/support/temp_dir.h"

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DoctorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
    for (v1::Worker& worker : coordinator_.workers)
      worker.set_version("9.9.9");  // as the coordinator
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(DoctorTest, NodesThatAreWellAreCounted) {
  run_.Run("doctor --json");
  EXPECT_THAT(run_.out, AllOf(HasSubstr("2, none is silent"), HasSubstr("all 9.9.9")));
}

TEST_F(DoctorTest, NodesThatAreNotAreNamed) {
  coordinator_.workers[0].set_state(v1::Worker::LOST);
  coordinator_.workers[1].set_version("9.9.8");
  coordinator_.workers[1].set_clock_offset_us(-51'000);

  run_.Run("doctor --json");
  EXPECT_THAT(run_.out, AllOf(HasSubstr("1 of 2 silent: w0"),
                              HasSubstr("the coordinator has 9.9.9, w1 has 9.9.8"),
                              HasSubstr("largest offset 51.00 ms (w1)")));
}

// What has signed off is no node any more, and who does not say a version has no other.
TEST_F(DoctorTest, WhatIsGoneOrUntoldIsNoComplaint) {
  coordinator_.workers[0].set_state(v1::Worker::GONE);
  coordinator_.workers[0].set_version("0.0.1");
  coordinator_.workers[1].clear_version();

  run_.Run("doctor --json");
  EXPECT_THAT(run_.out, AllOf(HasSubstr("1, none is silent"), Not(HasSubstr("0.0.1")),
                              HasSubstr("all 9.9.9")));
}

TEST_F(DoctorTest, OfManyTheFirstAreNamed) {
  coordinator_.workers.resize(2);
  for (int i = 2; i < 7; ++i) {
    coordinator_.workers.push_back(coordinator_.workers[0]);
    coordinator_.workers.back().set_name("workers/w" + std::to_string(i));
  }
  for (v1::Worker& worker : coordinator_.workers)
    worker.set_state(v1::Worker::SUSPECT);

  run_.Run("doctor --json");
  EXPECT_THAT(run_.out, HasSubstr("7 of 7 silent: w0, w1, w2 and 4 more"));
}

// The fake clock stands at the beginning of 2024.
void SetTime(const char* text, google::protobuf::Timestamp* time) {
  absl::Time parsed;
  std::string error;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &parsed, &error)) << error;
  time->set_seconds(absl::ToUnixSeconds(parsed));
}

TEST_F(DoctorTest, CertificatesWarnInTheirLastMonthAndFailInTheirLastDays) {
  SetTime("2024-02-15T00:00:00Z", coordinator_.info.mutable_certificate_end_time());
  SetTime("2024-02-15T00:00:00Z", coordinator_.workers[0].mutable_certificate_end_time());
  EXPECT_EQ(run_.Run("doctor --json"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("the coordinator's certificate is valid until 2024-02-15"));
  EXPECT_THAT(run_.out, HasSubstr("that of w0, the first to end, is valid until 2024-02-15"));
  EXPECT_THAT(run_.out, Not(HasSubstr("renew")));

  SetTime("2024-01-30T00:00:00Z", coordinator_.info.mutable_certificate_end_time());
  SetTime("2024-01-04T01:00:00Z", coordinator_.workers[1].mutable_certificate_end_time());
  EXPECT_EQ(run_.Run("doctor --json"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, AllOf(HasSubstr("an operator renews it and restarts assayd"),
                              HasSubstr("that of w1, the first to end"), HasSubstr("\"warn\"")));

  SetTime("2024-01-03T23:00:00Z", coordinator_.workers[1].mutable_certificate_end_time());
  SetTime("2024-01-20T23:00:00Z", coordinator_.workers[0].mutable_certificate_end_time());
  EXPECT_EQ(run_.Run("doctor"), ExitStatus::kFailed);
  EXPECT_THAT(run_.out, HasSubstr("valid until 2024-01-03; 2 end within 30 days"));

  SetTime("2023-12-31T23:00:00Z", coordinator_.info.mutable_certificate_end_time());
  EXPECT_EQ(run_.Run("doctor"), ExitStatus::kFailed);
  EXPECT_THAT(run_.out, HasSubstr("the coordinator's certificate ended on 2023-12-31"));
}

TEST_F(DoctorTest, ThisHostsClockIsComparedWithTheCoordinators) {
  SetTime("2024-01-01T00:00:01Z", coordinator_.info.mutable_current_time());
  EXPECT_EQ(run_.Run("doctor --json"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("this host's is -1.000 s from the coordinator's"));
  EXPECT_THAT(run_.out, Not(HasSubstr("on both hosts")));
  SetTime("2023-12-31T23:58:00Z", coordinator_.info.mutable_current_time());
  EXPECT_EQ(run_.Run("doctor --json"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, AllOf(HasSubstr("+120.000 s"), HasSubstr("ntpd on both hosts")));
  SetTime("2023-12-31T23:50:00Z", coordinator_.info.mutable_current_time());
  EXPECT_EQ(run_.Run("doctor --json"), ExitStatus::kFailed);
}

TEST_F(DoctorTest, PortAndSiteAreTried) {
  const testing::TempDir dir;
  ASSERT_NE(std::signal(SIGPIPE, SIG_IGN), SIG_ERR);  // of the server, whose client leaves early
  const testing::HttpsServer server(dir.path(), [](const std::string&) { return std::nullopt; });
  coordinator_.info.set_data_directory(dir.path());
  coordinator_.info.set_tcp_address(server.Url("").substr(std::string("https://").size()));
  coordinator_.info.set_web_url("https://127.0.0.1:1");
  EXPECT_EQ(run_.Run("doctor --json"), ExitStatus::kDone);
  EXPECT_THAT(run_.out, AllOf(HasSubstr("is reached from this host"),
                              HasSubstr("https://127.0.0.1:1: cannot connect to 127.0.0.1:1"),
                              HasSubstr("systemctl status assay-web")));

  coordinator_.info.set_tcp_address("127.0.0.1:1");
  coordinator_.info.set_web_url(server.Url("/"));
  EXPECT_EQ(run_.Run("doctor --json"), ExitStatus::kFailed);
  EXPECT_THAT(run_.out, AllOf(HasSubstr("look at listen_address and at the firewall"),
                              HasSubstr("/ is reached, its certificate is valid until")));
}

TEST(JudgeBackendsTest, AGpuThatCannotBeUsedIsAWarningOnlyWhereThereIsOne) {
  constexpr char kAnswer[] =
      "onednn\nreference\ncuda: cannot load libassay_cuda.so: libcudnn.so.9: no such file\n";

  EXPECT_EQ(JudgeBackends(kAnswer, /*has_gpu=*/false).state, "ok");
  const Check check = JudgeBackends(kAnswer, /*has_gpu=*/true);
  EXPECT_EQ(check.state, "warn");
  EXPECT_THAT(check.detail, HasSubstr("onednn, reference; not this machine's GPU"));
  EXPECT_THAT(check.remedy, HasSubstr("libcudnn.so.9"));
}

// What a log line of the trainer says is no backend.
TEST(JudgeBackendsTest, ALibraryThatIsMissingIsNamed) {
  const Check check = JudgeBackends(
      "time=now level=info backend=cuda\ncuda\nonednn\nlibnccl.so.2 is missing: slow; get it\n",
      /*has_gpu=*/true);

  EXPECT_EQ(check.state, "warn");
  EXPECT_EQ(check.detail, "cuda, onednn");
  EXPECT_EQ(check.remedy, "libnccl.so.2 is missing: slow; get it");
}

TEST(JudgeBackendsTest, ATrainerWithoutAnyFails) {
  EXPECT_EQ(JudgeBackends("", false).state, "fail");
}

}  // namespace
}  // namespace assay::cli
