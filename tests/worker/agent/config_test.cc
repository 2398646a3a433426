#include "worker/agent/config.h"

#include <unistd.h>

#include <array>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "worker/agent/meter_options.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;
using testing::TempDir;

v1::WorkerConfig GoodConfig() {
  v1::WorkerConfig config;
  config.set_name("w0");
  config.set_server_address("head:7443");
  config.set_data_directory("/var/lib/assay");
  config.set_ca_certificate_path("/etc/assay/ca.crt");
  return config;
}

absl::StatusOr<v1::WorkerConfig> Load(const std::string& text) {
  const TempDir dir;
  EXPECT_THAT(WriteFileAtomic(dir.Path("worker.conf"), text), IsOk());
  return LoadConfig(dir.Path("worker.conf"));
}

TEST(ConfigTest, AGoodConfigHasNoProblems) {
  EXPECT_THAT(ProblemsOf(GoodConfig()), IsEmpty());
}

TEST(ConfigTest, AllProblemsAreReportedAtOnce) {
  EXPECT_THAT(
      Load("name: 'W 0'\n"
           "server_address: 'head'\n"
           "ca_certificate_path: 'ca.crt'\n"
           "enrolment_token: 'a' enrolment_token_path: '/b'\n"
           "core_count: -1\n"
           "process_count_max: -1\n"
           "meter_comparisons { meter: 'cray' percent: 7 }\n"
           "cores: [0, 0, 100000]\n"
           "labels { key: 'rack' value: '' }\n"
           "trainer_environment { key: '1X' value: 'y' }\n"),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("name: \"W 0\""), HasSubstr("server_address: \"head\""),
                HasSubstr("data_directory: missing"), HasSubstr("ca_certificate_path: \"ca.crt\""),
                HasSubstr("give one of them"), HasSubstr("core_count: -1"),
                HasSubstr("process_count_max: -1"), HasSubstr("meter: \"cray\" is none"),
                HasSubstr("percent: 7 is not"), HasSubstr("with: missing"),
                HasSubstr("cores: 0 is given twice"), HasSubstr("cores: 100000"),
                HasSubstr("labels: \"rack\""), HasSubstr("trainer_environment: \"1X\""))));
}

TEST(ConfigTest, MetersOverTheNetworkAreVerifiedAndNamed) {
  EXPECT_THAT(Load("name: 'w0' server_address: 'unix:/s' data_directory: '/d'\n"
                   "redfish_meter { url: 'http://n1-bmc/redfish/v1/Chassis/1/Power' }\n"
                   "snmp_meters { power_oids: 'outlet1' watts_per_unit: -1 timeout_ms: 70000 }\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("redfish_meter.url: \"http://n1-bmc/redfish/v1/Chassis/1/"
                                       "Power\" does not begin with https://"),
                             HasSubstr("redfish_meter.credentials_path: missing"),
                             HasSubstr("snmp_meters.address: missing"),
                             HasSubstr("\"outlet1\" is no object in numbers"),
                             HasSubstr("watts_per_unit: -1"), HasSubstr("timeout_ms: 70000"),
                             HasSubstr("snmp_meters.credentials_path: missing"))));
}

TEST(ConfigTest, TheExampleOfMetersHolds) {
  const absl::StatusOr<std::string> meters = ReadFile(EXAMPLES "/meters/worker.textproto");
  ASSERT_THAT(meters.status(), IsOk());
  const auto config = Load("name: 'w0' server_address: 'unix:/s' data_directory: '/d'\n" + *meters);
  ASSERT_THAT(config.status(), IsOk());
  EXPECT_EQ(config->snmp_meters_size(), 2);
}

TEST(ConfigTest, MetersAreThoseOfThisNode) {
  std::array<char, 256> host{};
  ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
  const std::string node = std::string(host.data()).substr(0, std::string(host.data()).find('.'));
  v1::WorkerConfig config = GoodConfig();
  config.mutable_redfish_meter()->set_url("https://{host}-bmc/redfish/v1/Chassis/1/Power");
  for (const std::string& one : {std::string(), node, std::string("another")}) {
    v1::SnmpMeter* const meter = config.add_snmp_meters();
    meter->set_address("pdu-of-" + one);
    meter->set_node(one);
  }
  const MeterOptions meters = MeterOptionsOf(config);
  ASSERT_TRUE(meters.redfish.has_value());
  EXPECT_EQ(meters.redfish->url, "https://" + node + "-bmc/redfish/v1/Chassis/1/Power");
  ASSERT_EQ(meters.snmp.size(), size_t{2});
  EXPECT_EQ(meters.snmp[1].address, "pdu-of-" + node);
  EXPECT_EQ(meters.snmp[1].watts_per_unit, 1);
}

TEST(ConfigTest, AnUnknownFieldIsAnErrorWithItsPlace) {
  EXPECT_THAT(Load("name: 'w0'\nserver_adress: 'head:1'\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("worker.conf:2:"), HasSubstr("server_adress"))));
}

TEST(ConfigTest, AMissingFileIsNamed) {
  EXPECT_THAT(LoadConfig("/no/such.conf"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such.conf")));
}

TEST(ConfigTest, AddressesAreHostAndPortOrASocket) {
  for (const char* good : {"head:7443", "127.0.0.1:1", "[::1]:65535", "unix:/run/assay.sock"}) {
    v1::WorkerConfig config = GoodConfig();
    config.set_server_address(good);
    EXPECT_THAT(ProblemsOf(config), IsEmpty()) << good;
  }
  for (const char* bad : {"", "head", ":7443", "head:0", "head:65536", "head:x", "unix:"}) {
    v1::WorkerConfig config = GoodConfig();
    config.set_server_address(bad);
    EXPECT_THAT(ProblemsOf(config), ElementsAre(HasSubstr("server_address"))) << bad;
  }
}

TEST(ConfigTest, ANodeCacheNeedsAQuotaAndAPlaceThatRanksCanPassTo) {
  v1::WorkerConfig config = GoodConfig();
  config.mutable_node_cache()->set_directory("/nvme/cache");
  EXPECT_THAT(ProblemsOf(config), ElementsAre(HasSubstr("node_cache.quota_gb: 0")));
  config.mutable_node_cache()->set_quota_gb(100);
  EXPECT_THAT(ProblemsOf(config), IsEmpty());
  config.mutable_node_cache()->set_directory(config.data_directory() + "/cache");
  EXPECT_THAT(ProblemsOf(config), ElementsAre(HasSubstr("node_cache.directory")));
}

TEST(ConfigTest, DefaultsFillOnlyWhatIsEmpty) {
  const v1::WorkerConfig filled = WithDefaults(GoodConfig(), "/opt/bin");
  EXPECT_EQ(filled.stage_directory(), "/var/lib/assay/stage");
  EXPECT_EQ(filled.trainer_program(), "/opt/bin/assay-train");
  EXPECT_FALSE(filled.rendezvous_host().empty());

  v1::WorkerConfig config = GoodConfig();
  config.set_stage_directory("/nvme");
  config.set_rendezvous_host("10.0.0.1");
  EXPECT_EQ(WithDefaults(config, "/opt/bin").stage_directory(), "/nvme");
  EXPECT_EQ(WithDefaults(config, "/opt/bin").rendezvous_host(), "10.0.0.1");
}

}  // namespace
}  // namespace assay::agent
