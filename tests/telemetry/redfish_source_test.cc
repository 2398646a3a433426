// The meter of a node's board, asked of a server that speaks TLS as controllers do.

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/https_server.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "tests/telemetry/meter_sample.h"
#include "worker/agent/telemetry/redfish_answer.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

using telemetry::MeterState;

// As DSP2046 shows them, and controllers answer.
constexpr char kMetrics[] = R"({
  "@odata.type": "#EnvironmentMetrics.v1_3_0.EnvironmentMetrics", "Id": "EnvironmentMetrics",
  "PowerWatts": {"DataSourceUri": "/redfish/v1/Chassis/1/Sensors/TotalPower", "Reading": 374.5},
  "EnergykWh": {"DataSourceUri": "/redfish/v1/Chassis/1/Sensors/TotalEnergy", "Reading": 325.675},
  "EnergyJoules": {"Reading": 1172430000}})";
constexpr char kPower[] = R"({
  "@odata.type": "#Power.v1_7_0.Power", "Id": "Power",
  "PowerControl": [{"MemberId": "0", "Name": "Server Power Control", "PowerConsumedWatts": 344,
                    "PowerMetrics": {"IntervalInMin": 30, "AverageConsumedWatts": 319}},
                   {"MemberId": "1", "Name": "CPU Sub-system Power", "PowerConsumedWatts": 180}]})";

TEST(RedfishAnswerTest, ACounterOfJoulesComesFirst) {
  const MeterAnswer answer = ReadRedfishAnswer(kMetrics);
  EXPECT_EQ(answer.state, MeterState::kReads);
  EXPECT_EQ(answer.energy_uj, 1'172'430'000'000'000);
  EXPECT_EQ(answer.power_mw, 374'500);
}

TEST(RedfishAnswerTest, PowerOfThePartsIsNotAddedToThatOfTheNode) {
  const MeterAnswer answer = ReadRedfishAnswer(kPower);
  EXPECT_EQ(answer.power_mw, 344'000);
  EXPECT_FALSE(answer.energy_uj.has_value());
}

TEST(RedfishAnswerTest, KilowattHoursAreTooCoarseWhereThereIsPower) {
  const MeterAnswer both =
      ReadRedfishAnswer(R"({"PowerWatts": {"Reading": 400}, "EnergykWh": {"Reading": 1.5}})");
  EXPECT_FALSE(both.energy_uj.has_value());
  EXPECT_EQ(both.power_mw, 400'000);
  EXPECT_EQ(ReadRedfishAnswer(R"({"EnergykWh": {"Reading": 1.5}})").energy_uj, 5'400'000'000'000);
}

TEST(RedfishAnswerTest, WhatIsNoReadingIsSaidToBeNone) {
  for (const char* const body :
       {"", "<html>Login</html>", "[]", "{}", R"({"PowerWatts": {"Reading": null}})",
        R"({"PowerWatts": 400})", R"({"PowerWatts": {"Reading": -3}})",
        R"({"PowerWatts": {"Reading": 1e300}})", R"({"PowerControl": {"PowerConsumedWatts": 3}})",
        R"({"PowerControl": ["x", {"PowerConsumedWatts": "344"}]})"}) {
    const MeterAnswer answer = ReadRedfishAnswer(body);
    EXPECT_EQ(answer.state, MeterState::kNoReading) << body;
    EXPECT_FALSE(answer.energy_uj.has_value() || answer.power_mw.has_value()) << body;
  }
}

class RedfishSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::WriteFile(dir_.Path("ca.pem"), server_.ca_pem());
    PutCredentials("user reader\npassword s3cret word\n");
  }
  void PutCredentials(const std::string& text) {
    testing::WriteFile(dir_.Path("credentials"), text);
    ASSERT_EQ(chmod(dir_.Path("credentials").c_str(), 0600), 0);
  }

  std::unique_ptr<TelemetrySource> Make(std::chrono::milliseconds timeout = kLong) {
    SourceOptions options;
    options.meters.redfish =
        RedfishOptions{.url = server_.Url("/redfish/v1/Chassis/1/EnvironmentMetrics"),
                       .credentials_path = dir_.Path("credentials"),
                       .ca_certificate_path = ca_certificate_path_,
                       .timeout = timeout};
    return MakeRedfishSource(options);
  }

  std::optional<testing::HttpsAnswer> Answer(const std::string& request) {
    ++request_count_;
    if (is_hanging_) return std::nullopt;
    const bool is_basic = absl::StrContains(
        request,
        absl::StrCat("Authorization: Basic ", absl::Base64Escape("reader:s3cret word"), "\r\n"));
    const bool is_token = absl::StrContains(request, "X-Auth-Token: t0ken\r\n");
    if (!is_basic && !is_token) return testing::HttpsAnswer{401, "{}"};
    if (!absl::StartsWith(request, "GET /redfish/v1/Chassis/1/EnvironmentMetrics "))
      return testing::HttpsAnswer{404, "{}"};
    return testing::HttpsAnswer{status_, kMetrics};
  }

  static constexpr std::chrono::milliseconds kLong{20'000};
  testing::TempDir dir_;
  std::string ca_certificate_path_ = dir_.Path("ca.pem");
  std::atomic<int> request_count_ = 0;
  std::atomic<int> status_ = 200;
  std::atomic<bool> is_hanging_ = false;
  testing::HttpsServer server_{dir_.Path(""),
                               [this](const std::string& request) { return Answer(request); }};
};

TEST_F(RedfishSourceTest, ReadsTheNodesEnergyByPasswordOrByToken) {
  for (const char* const credentials : {"user reader\npassword s3cret word\n", "token t0ken\n"}) {
    PutCredentials(credentials);
    const std::unique_ptr<TelemetrySource> source = Make();
    EXPECT_TRUE(source->is_meter());
    EXPECT_EQ(source->columns()[0].name, "energy.node.redfish");
    const MeterSample sample = SampleAnswered(source.get());
    EXPECT_EQ(sample.state, MeterState::kReads);
    EXPECT_EQ(sample.energy_uj, 1'172'430'000'000'000);
    EXPECT_EQ(sample.power_mw, 374'500);
  }
}

TEST_F(RedfishSourceTest, RefusedCredentialsAreNotTriedAgainAtOnce) {
  PutCredentials("user reader\npassword wrong\n");
  const std::unique_ptr<TelemetrySource> source = Make();
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(SampleAnswered(source.get()).state, MeterState::kRefused);
  EXPECT_EQ(request_count_, 1) << "controllers lock accounts";
}

TEST_F(RedfishSourceTest, WhoCannotShowACertificateGetsNoPassword) {
  ca_certificate_path_.clear();  // the system does not know the test's authority
  const std::unique_ptr<TelemetrySource> source = Make();
  EXPECT_EQ(SampleAnswered(source.get()).state, MeterState::kUnverified);
  EXPECT_EQ(request_count_, 0);
}

TEST_F(RedfishSourceTest, AControllerThatHangsIsAskedAgainWhenItsTimeIsOver) {
  is_hanging_ = true;
  const std::unique_ptr<TelemetrySource> source = Make(std::chrono::milliseconds(200));
  SampleOnce(source.get());
  EXPECT_EQ(SampleOnce(source.get()).state, MeterState::kLate);
  while (request_count_ < 2)  // the first was given up
    EXPECT_EQ(SampleOnce(source.get()).state, MeterState::kLate);
  is_hanging_ = false;
  EXPECT_EQ(SampleAnswered(source.get()).state, MeterState::kReads);
}

TEST_F(RedfishSourceTest, WhatItCannotDoIsTold) {
  status_ = 503;
  EXPECT_EQ(SampleAnswered(Make().get()).state, MeterState::kNoReading);
  ASSERT_EQ(chmod(dir_.Path("credentials").c_str(), 0644), 0);
  EXPECT_EQ(SampleAnswered(Make().get()).state, MeterState::kNoCredentials);
  PutCredentials("user reader\n");
  EXPECT_EQ(SampleAnswered(Make().get()).state, MeterState::kNoCredentials);
  EXPECT_TRUE(MakeRedfishSource({})->columns().empty());
}

}  // namespace
}  // namespace assay::agent
