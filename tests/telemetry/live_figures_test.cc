#include "worker/agent/telemetry/live_figures.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using telemetry::kMissing;
using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::Eq;
using testing::IsOk;
using ::testing::Optional;

constexpr int64_t kOneSecondNs = 1'000'000'000;

const std::vector<telemetry::Column>& Columns() {
  static const auto* const kColumns =
      new std::vector<telemetry::Column>{{"cpu.user", "ms", true},
                                         {"cpu.system", "ms", true},
                                         {"cpu.idle", "ms", true},
                                         {"run.cpu", "ms", true},
                                         {"memory.available", "bytes", false},
                                         {"disk.vda.read", "bytes", true},
                                         {"server.nfs.read", "bytes", true},
                                         {"disk.vda.written", "bytes", true},
                                         {"network.eth0.received", "bytes", true},
                                         {"infiniband.mlx5_0_1.received", "bytes", true},
                                         {"network.eth0.sent", "bytes", true},
                                         {"gpu.0.utilization", "%", false},
                                         {"gpu.1.utilization", "%", false},
                                         {"power.gpu.0", "mW", false},
                                         {"power.gpu.1", "mW", false},
                                         {"energy.node.cray", "uJ", true},
                                         {"power.node.cray", "W", false},
                                         {"network.eth0.dropped", "events", true}};
  return *kColumns;
}

// A sample in which what is not named is missing.
std::vector<int64_t> Sample(const std::map<std::string, int64_t>& named) {
  std::vector<int64_t> values;
  for (const telemetry::Column& column : Columns()) {
    const auto found = named.find(column.name);
    values.push_back(found == named.end() ? kMissing : found->second);
  }
  return values;
}

// What the file says after two samples, two seconds apart.
std::optional<LiveFigures> FiguresOf(const std::map<std::string, int64_t>& first,
                                     const std::map<std::string, int64_t>& second) {
  const testing::TempDir dir;
  LiveFile file(dir.Path("figures"), Columns());
  EXPECT_THAT(file.Take(5 * kOneSecondNs, Sample(first)), IsOk());
  EXPECT_THAT(file.Take(7 * kOneSecondNs, Sample(second)), IsOk());
  return ParseLiveFigures(*ReadFile(dir.Path("figures")));
}

TEST(LiveFiguresTest, RatesAreOfTheTimeBetweenTwoSamples) {
  const std::optional<LiveFigures> figures = FiguresOf({{"cpu.user", 1000},
                                                        {"cpu.system", 100},
                                                        {"cpu.idle", 7000},
                                                        {"run.cpu", 500},
                                                        {"disk.vda.read", 1000},
                                                        {"server.nfs.read", 0},
                                                        {"disk.vda.written", 4096},
                                                        {"network.eth0.received", 10},
                                                        {"infiniband.mlx5_0_1.received", 0},
                                                        {"network.eth0.sent", 1}},
                                                       {{"cpu.user", 3500},
                                                        {"cpu.system", 600},
                                                        {"cpu.idle", 8000},
                                                        {"run.cpu", 2500},
                                                        {"memory.available", 6'000'000'000},
                                                        {"disk.vda.read", 5000},
                                                        {"server.nfs.read", 20'000},
                                                        {"disk.vda.written", 4096},
                                                        {"network.eth0.received", 110},
                                                        {"infiniband.mlx5_0_1.received", 900},
                                                        {"network.eth0.sent", 3}});
  ASSERT_TRUE(figures.has_value());
  EXPECT_EQ(figures->at_ns, 7 * kOneSecondNs);
  EXPECT_THAT(figures->run_cpu_share, Optional(DoubleEq(0.5)));     // 2000 of 4000 ms
  EXPECT_THAT(figures->other_cpu_share, Optional(DoubleEq(0.25)));  // 1000 more were busy
  EXPECT_THAT(figures->memory_available_bytes, Optional(6e9));
  EXPECT_THAT(figures->storage_read_bytes_per_s, Optional(12'000.0));
  EXPECT_THAT(figures->storage_written_bytes_per_s, Optional(0.0)) << "known, and nothing";
  EXPECT_THAT(figures->network_received_bytes_per_s, Optional(500.0));
  EXPECT_THAT(figures->network_sent_bytes_per_s, Optional(1.0));
}

TEST(LiveFiguresTest, WhatIsNotKnownIsAbsent) {
  const std::optional<LiveFigures> figures = FiguresOf({}, {});
  ASSERT_TRUE(figures.has_value());
  EXPECT_EQ(*figures, LiveFigures{.at_ns = 7 * kOneSecondNs});
}

TEST(LiveFiguresTest, OfServersThatDoNotAllAnswerNothingIsSaid) {
  const std::optional<LiveFigures> figures =
      FiguresOf({{"disk.vda.read", 1}, {"server.nfs.read", 1}}, {{"disk.vda.read", 5000}});
  EXPECT_EQ(figures->storage_read_bytes_per_s, std::nullopt);
}

TEST(LiveFiguresTest, ACounterThatWasSetBackIsNoRate) {
  const std::optional<LiveFigures> figures =
      FiguresOf({{"network.eth0.sent", 1'000'000}}, {{"network.eth0.sent", 3}});
  EXPECT_EQ(figures->network_sent_bytes_per_s, std::nullopt);
}

// Searched for now and then: it brings what it has used since it began.
TEST(LiveFiguresTest, AProcessThatIsFoundLateUsesNoMoreThanTheNodeDid) {
  const std::optional<LiveFigures> figures =
      FiguresOf({{"cpu.user", 0}, {"cpu.system", 0}, {"cpu.idle", 0}, {"run.cpu", 0}},
                {{"cpu.user", 900}, {"cpu.system", 100}, {"cpu.idle", 1000}, {"run.cpu", 60'000}});
  EXPECT_THAT(figures->run_cpu_share, Optional(DoubleEq(0.5)));
  EXPECT_THAT(figures->other_cpu_share, Optional(DoubleEq(0.0)));
}

TEST(LiveFiguresTest, GpusTogether) {
  const std::optional<LiveFigures> both = FiguresOf({}, {{"gpu.0.utilization", 90},
                                                         {"gpu.1.utilization", 60},
                                                         {"power.gpu.0", 300'000},
                                                         {"power.gpu.1", 250'000}});
  EXPECT_THAT(both->gpu_share, Optional(DoubleEq(0.75)));
  EXPECT_THAT(both->gpu_watts, Optional(DoubleEq(550)));
  // What one of them draws is not what all draw.
  const std::optional<LiveFigures> one =
      FiguresOf({}, {{"gpu.0.utilization", 90}, {"power.gpu.0", 300'000}});
  EXPECT_THAT(one->gpu_share, Optional(DoubleEq(0.9)));
  EXPECT_EQ(one->gpu_watts, std::nullopt);
}

TEST(LiveFiguresTest, ANodesPowerIsThatOfItsMeterOrOfItsEnergy) {
  EXPECT_THAT(FiguresOf({}, {{"power.node.cray", 812}})->node_watts, Optional(812.0));
  EXPECT_THAT(FiguresOf({{"energy.node.cray", 0}}, {{"energy.node.cray", 900'000'000}})->node_watts,
              Optional(DoubleNear(450, 1e-6)));
  EXPECT_EQ(FiguresOf({{"energy.node.cray", 0}},
                      {{"energy.node.cray", std::numeric_limits<int64_t>::max()}})
                ->node_watts,
            std::nullopt)
      << "no node draws terawatts";
}

TEST(LiveFiguresTest, TheFirstSampleSaysNothing) {
  const testing::TempDir dir;
  LiveFile file(dir.Path("figures"), Columns());
  ASSERT_THAT(file.Take(kOneSecondNs, Sample({{"power.node.cray", 812}})), IsOk());
  EXPECT_EQ(ParseLiveFigures(*ReadFile(dir.Path("figures"))), std::nullopt);
}

TEST(LiveFiguresTest, AFolderThatIsNotThereIsAnError) {
  LiveFile file("/nowhere/figures", Columns());
  EXPECT_FALSE(file.Take(kOneSecondNs, Sample({})).ok());
}

TEST(LiveFiguresTest, TextsThatAreNotWholeSayNothing) {
  const std::string text = LiveFiguresText({.at_ns = 7, .node_watts = 812.5});
  ASSERT_EQ(text.size(), kLiveFiguresBytes);
  ASSERT_THAT(ParseLiveFigures(text), Optional(Eq(LiveFigures{.at_ns = 7, .node_watts = 812.5})));
  // Half of it is of the sample after.
  const std::string next = LiveFiguresText({.at_ns = 8, .node_watts = 1});
  for (size_t cut = sizeof("at 8") - 1; cut < text.size() - 1; ++cut)
    EXPECT_EQ(ParseLiveFigures(next.substr(0, cut) + text.substr(cut)), std::nullopt) << cut;
  EXPECT_EQ(ParseLiveFigures(""), std::nullopt);
  EXPECT_EQ(ParseLiveFigures(std::string(kLiveFiguresBytes, '\0')), std::nullopt);
}

// Whoever has the step's account may write anything.
TEST(LiveFiguresTest, NumbersThatAreNoneAreLeftOut) {
  const std::string text = LiveFiguresText({.at_ns = 7, .node_watts = 812.5});
  for (const char* bad : {"nan  ", "inf  ", "-inf ", "-1   ", "1e999", "many "}) {
    const std::optional<LiveFigures> figures =
        ParseLiveFigures(absl::StrReplaceAll(text, {{"812.5", bad}}));
    ASSERT_TRUE(figures.has_value()) << bad;
    EXPECT_EQ(figures->node_watts, std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace assay::agent
