// Slurm's figures of a node's power, as `scontrol show` of several versions prints them.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;

// Slurm 22.05.
constexpr char kNode[] = R"(NodeName=n001 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=64 CPUEfctv=64 CPUTot=64 CPULoad=63.98
   CfgTRES=cpu=64,mem=515000M,billing=64
   AllocTRES=cpu=64
   CapWatts=n/a
   CurrentWatts=612 AveWatts=588
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
)";
constexpr char kNodeWithoutPlugin[] = R"(NodeName=n001 Arch=x86_64 CoresPerSocket=32
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
)";
// Slurm 14.11.
constexpr char kOldNode[] =
    "NodeName=n001 Arch=x86_64\n   CurrentWatts=612 LowestJoules=9 ConsumedJoules=73400\n";
constexpr char kIpmi[] = "AcctGatherEnergyType    = acct_gather_energy/ipmi\n";
constexpr char kRapl[] = "AcctGatherEnergyType    = acct_gather_energy/rapl\n";

class SlurmSourceTest : public ::testing::Test {
 protected:
  void Make(const std::string& config, const std::string& node) {
    SourceOptions options;
    options.now_ns = [this] { return now_ns_.load(); };
    options.meters.slurm = SlurmOptions{
        .node = "n001", .show = [this, config, node](const std::vector<std::string>& what) {
          const bool is_config = what == std::vector<std::string>{"config"};
          if (!is_config) {
            EXPECT_THAT(what, ElementsAre("node", "n001"));
          }
          ++(is_config ? config_count_ : node_count_);
          return is_config ? config : node;
        }};
    source_ = MakeSlurmSource(options);
  }
  // What one sample says, by column.
  std::map<std::string, int64_t> Sample() {
    std::vector<int64_t> values(source_->columns().size(), telemetry::kMissing);
    source_->Sample(values);
    std::map<std::string, int64_t> said;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != telemetry::kMissing) said[source_->columns()[i].name] = values[i];
    std::this_thread::yield();
    return said;
  }
  // What the next sample says that says something; empty if none does, however long it is waited.
  std::map<std::string, int64_t> Read() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    std::map<std::string, int64_t> said;
    while (said.empty() && std::chrono::steady_clock::now() < deadline)
      said = Sample();
    return said;
  }
  // What the samples say until Slurm has been asked that often, and for a moment after.
  std::map<std::string, int64_t> ReadUntilAsked(int config_count, int node_count) {
    std::map<std::string, int64_t> said;
    while (config_count_ < config_count || node_count_ < node_count)
      said.merge(Sample());
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (std::chrono::steady_clock::now() < end)
      said.merge(Sample());
    return said;
  }

  std::atomic<int64_t> now_ns_ = 1'000'000'000;
  std::atomic<int> config_count_ = 0;
  std::atomic<int> node_count_ = 0;
  std::unique_ptr<TelemetrySource> source_;
};

TEST_F(SlurmSourceTest, SaysWhatAPluginOfWholeNodesMeasures) {
  Make(kIpmi, kNode);
  EXPECT_FALSE(source_->is_meter());
  EXPECT_THAT(Read(), ElementsAre(std::pair("check.power.slurm", 612'000)));
  EXPECT_TRUE(ReadUntilAsked(1, 1).empty()) << "it is asked once a minute";
  EXPECT_EQ(node_count_, 1);
  now_ns_ += 61'000'000'000;
  EXPECT_THAT(Read(), ElementsAre(std::pair("check.power.slurm", 612'000)));
}

TEST_F(SlurmSourceTest, OlderOnesCountJoules) {
  Make(kIpmi, kOldNode);
  EXPECT_THAT(Read(), ElementsAre(std::pair("check.energy.slurm", 73'400'000'000),
                                  std::pair("check.power.slurm", 612'000)));
}

TEST_F(SlurmSourceTest, WhatIsNotOfTheWholeNodeIsNoCheck) {
  Make(kRapl, kNode);
  EXPECT_TRUE(ReadUntilAsked(1, 0).empty());
  Make("AcctGatherEnergyType    = (null)\n", kNode);
  EXPECT_TRUE(ReadUntilAsked(2, 0).empty());
  Make("", "");
  EXPECT_TRUE(ReadUntilAsked(3, 0).empty()) << "Slurm does not answer";
  EXPECT_EQ(node_count_, 0);
  Make(kIpmi, kNodeWithoutPlugin);
  EXPECT_TRUE(ReadUntilAsked(4, 1).empty());
  EXPECT_TRUE(MakeSlurmSource({})->columns().empty());
}

}  // namespace
}  // namespace assay::agent
