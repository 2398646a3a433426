// Outlets that feed the node, asked of Net-SNMP's daemon in place of a power distribution unit.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"
#include "tests/telemetry/meter_sample.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

using telemetry::MeterState;

constexpr char kDaemon[] = "/usr/sbin/snmpd";
constexpr char kOutlets[] = "1.3.6.1.4.1.318.9.7";

// A port that is free now.
int FreePort() {
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(fd.get(), raw, size), 0);
  EXPECT_EQ(getsockname(fd.get(), raw, &size), 0);
  return ntohs(address.sin_port);
}

class SnmpSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!FileExists(kDaemon)) GTEST_SKIP() << "there is no " << kDaemon << " (package snmpd)";
    PutPower("2345");
    // Two outlets say what stands in a file.
    testing::WriteFile(dir_.Path("outlets.sh"),
                       absl::StrCat("#!/bin/sh\n[ \"$1\" = -g ] || exit 0\ncase $2 in\n.", kOutlets,
                                    ".1|.", kOutlets, ".2) ;;\n*) exit 0 ;;\nesac\n",
                                    "echo \"$2\"; echo gauge; cat ", dir_.Path("power"), "\n"));
    ASSERT_EQ(chmod(dir_.Path("outlets.sh").c_str(), 0700), 0);
    testing::WriteFile(
        dir_.Path("snmpd.conf"),
        absl::StrCat("rocommunity s3cret-community 127.0.0.1\n",
                     "createUser reader SHA-256 \"auth s3cret\" AES \"priv s3cret\"\n",
                     "rouser reader authpriv\n", "pass .", kOutlets, " ", dir_.Path("outlets.sh"),
                     "\n"));
    PutCredentials("user reader\nauth SHA-256 auth s3cret\npriv AES priv s3cret\n");
    Start();
  }
  void TearDown() override {
    if (daemon_.pid > 0) StopGroup(daemon_, absl::Seconds(5)).IgnoreError();
  }

  void Start() {
    const absl::StatusOr<ProcessId> started =
        Spawn({.argv = {kDaemon, "-f", "-Lf", dir_.Path("log"), "-C", "-c", dir_.Path("snmpd.conf"),
                        "-I", "-smux", absl::StrCat("udp:127.0.0.1:", port_)},
               .environment = {absl::StrCat("SNMP_PERSISTENT_DIR=", dir_.Path("kept"))},
               .output_path = dir_.Path("output")});
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *started;
  }

  void PutPower(const std::string& text) { testing::WriteFile(dir_.Path("power"), text + "\n"); }
  void PutCredentials(const std::string& text) {
    testing::WriteFile(dir_.Path("credentials"), text);
    ASSERT_EQ(chmod(dir_.Path("credentials").c_str(), 0600), 0);
  }

  SnmpOptions Unit(const std::vector<std::string>& outlets = {".1", ".2"}) const {
    SnmpOptions unit{.address = absl::StrCat("127.0.0.1:", port_),
                     .power_oids = {},
                     .watts_per_unit = 0.1,
                     .credentials_path = dir_.Path("credentials"),
                     .timeout = std::chrono::milliseconds(2000)};
    for (const std::string& outlet : outlets)
      unit.power_oids.push_back(kOutlets + outlet);
    return unit;
  }
  static std::unique_ptr<TelemetrySource> Make(std::vector<SnmpOptions> units) {
    SourceOptions options;
    options.meters.snmp = std::move(units);
    return MakeSnmpSource(options);
  }
  // The daemon may still be starting.
  static MeterSample Read(TelemetrySource* source) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (;;) {
      const MeterSample sample = SampleAnswered(source);
      const bool is_there = sample.state == MeterState::kReads ||
                            sample.state == MeterState::kNoReading ||
                            sample.state == MeterState::kRefused;
      if (is_there || std::chrono::steady_clock::now() > deadline) return sample;
      std::this_thread::yield();
    }
  }

  testing::TempDir dir_;
  const int port_ = FreePort();
  ProcessId daemon_{};
};

TEST_F(SnmpSourceTest, AddsTheOutletsThatFeedTheNode) {
  const std::unique_ptr<TelemetrySource> source = Make({Unit()});
  EXPECT_TRUE(source->is_meter());
  EXPECT_EQ(source->columns()[1].name, "power.node.pdu");
  const MeterSample sample = Read(source.get());
  EXPECT_EQ(sample.state, MeterState::kReads);
  EXPECT_EQ(sample.power_mw, 469'000) << "twice 234.5 W";
  EXPECT_FALSE(sample.energy_uj.has_value());
  PutPower("1000");
  SampleAnswered(source.get());  // what was asked before
  EXPECT_EQ(Read(source.get()).power_mw, 200'000);
}

TEST_F(SnmpSourceTest, AddsUnitsAndTakesCommunities) {
  PutCredentials("community s3cret-community\n");
  const std::unique_ptr<TelemetrySource> source = Make({Unit({".1"}), Unit({".2"})});
  EXPECT_EQ(Read(source.get()).power_mw, 469'000);
}

TEST_F(SnmpSourceTest, AWrongPasswordIsToldFromAUnitThatIsNotThere) {
  PutCredentials("user reader\nauth SHA-256 auth wrong\npriv AES priv s3cret\n");
  EXPECT_EQ(Read(Make({Unit()}).get()).state, MeterState::kRefused);
  PutCredentials("user nobody\nauth SHA-256 auth s3cret\npriv AES priv s3cret\n");
  EXPECT_EQ(Read(Make({Unit()}).get()).state, MeterState::kRefused);
}

TEST_F(SnmpSourceTest, AnOutletThatIsNotThereIsNoReading) {
  const MeterSample sample = Read(Make({Unit({".1", ".3"})}).get());
  EXPECT_EQ(sample.state, MeterState::kNoReading);
  EXPECT_FALSE(sample.power_mw.has_value()) << "half of the node is not the node";
}

TEST_F(SnmpSourceTest, AUnitThatGoesAndComesBackIsReadAgain) {
  const std::unique_ptr<TelemetrySource> source = Make({Unit()});
  ASSERT_EQ(Read(source.get()).state, MeterState::kReads);
  ASSERT_TRUE(StopGroup(daemon_, absl::Seconds(5)).ok());
  daemon_ = {};
  while (SampleOnce(source.get()).state != MeterState::kLate)  // what was asked before
    std::this_thread::yield();
  Start();
  EXPECT_EQ(Read(source.get()).power_mw, 469'000);
}

TEST_F(SnmpSourceTest, SecretsThatSayTooLittleAreTold) {
  for (const char* const credentials :
       {"auth SHA-256 auth s3cret\n", "user reader\nauth MD5 auth s3cret\npriv AES priv s3cret\n",
        "user reader\nauth SHA-256 auth s3cret\n", "user reader\nauth SHA-256 short\n"}) {
    PutCredentials(credentials);
    EXPECT_EQ(SampleAnswered(Make({Unit()}).get()).state, MeterState::kNoCredentials)
        << credentials;
  }
  EXPECT_TRUE(Make({})->columns().empty());
}

}  // namespace
}  // namespace assay::agent
