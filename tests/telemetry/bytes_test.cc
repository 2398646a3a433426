// What nodes read in which part of a run, and whether the first pass came from storage.

#include "common/telemetry/bytes.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/telemetry/first_pass.h"
#include "common/telemetry/run_phases.h"

namespace assay::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSampleNs = 1'000'000'000;
constexpr int64_t kStartMs = 1'700'000'000'000;
constexpr double kMega = 1e6;

std::string Line(const std::string& key, int64_t second, const std::string& value = "null",
                 const std::string& metadata = "{}") {
  return absl::StrCat(":::MLLOG {\"namespace\": \"\", \"time_ms\": ", kStartMs + second * 1000,
                      ", \"event_type\": \"INTERVAL_START\", \"key\": \"", key,
                      "\", \"value\": ", value, ", \"metadata\": ", metadata, "}\n");
}

// Two seconds of preparation, two of reading ahead, two epochs of three seconds.
std::string TinyLog() {
  return Line("init_start", -2) + Line("train_samples", -1, "100") + Line("run_start", 0) +
         Line("epoch_start", 2) + Line("eval_start", 4) + Line("eval_stop", 5) +
         Line("epoch_stop", 5) + Line("epoch_start", 5) + Line("epoch_stop", 8) +
         Line("run_stop", 8);
}

// Counters that grow by so many MB in each second, from three seconds before the run on.
Series Grown(const std::vector<std::pair<std::string, std::vector<int64_t>>>& rates) {
  Series series;
  series.header.wall_us = (kStartMs - 3000) * 1000;
  series.header.node_ns = 50 * kSampleNs;
  for (size_t i = 0; i <= rates.front().second.size(); ++i)
    series.at_ns.push_back((50 + static_cast<int64_t>(i)) * kSampleNs);
  for (const auto& [name, megabytes] : rates) {
    series.header.columns.push_back({name, "bytes", true});
    std::vector<int64_t> values = {1000};
    for (const int64_t rate : megabytes)
      values.push_back(values.back() + rate * 1'000'000);
    series.columns.push_back(values);
  }
  return series;
}

// Seconds -3 to 9: 5 MB before the clock, 20 before epoch 1, 75 in it, nothing later.
const std::vector<int64_t> kHonest = {5, 0, 0, 10, 10, 25, 25, 25, 0, 0, 0, 0};
const std::vector<int64_t> kNothing(12, 0);

std::string Caches(const std::string& coldness, const std::string& file_system = "ext4",
                   const std::string& more = "") {
  return absl::StrCat("{\"coldness\": \"", coldness, "\", \"file_system\": \"", file_system,
                      "\", \"train_bytes\": 100000000", more, "}");
}

FirstPass PassOf(const Series& series, const std::string& caches, const std::string& log) {
  const RunPhases phases = PhasesOf(log);
  const NodePass node = NodePassOf(0, phases, &series, caches);
  return FirstPassOf(phases, std::span(&node, 1), 1, 100);
}

TEST(RunPhasesTest, AreWhatTheLogSays) {
  const RunPhases phases = PhasesOf(TinyLog() + Line("run_start", 99) +
                                    Line("staging_stop", 100, "null", "{\"cache_hit_bytes\": 70}"));
  EXPECT_EQ(phases.run_start_ms, kStartMs);
  EXPECT_EQ(phases.run_stop_ms, kStartMs + 8000);
  EXPECT_THAT(phases.epochs, ElementsAre(Interval{kStartMs + 2000, kStartMs + 5000},
                                         Interval{kStartMs + 5000, kStartMs + 8000}));
  EXPECT_THAT(phases.evaluations, ElementsAre(Interval{kStartMs + 4000, kStartMs + 5000}));
  EXPECT_EQ(phases.train_samples, 100);
  EXPECT_EQ(phases.declared_cache_bytes, 70);
}

TEST(RunPhasesTest, NonsenseIsNoPhase) {
  const RunPhases phases = PhasesOf(
      ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1e300, \"event_type\": \"X\", \"key\": "
      "\"run_start\", \"value\": null, \"metadata\": {}}\n" +
      Line("epoch_stop", 1) + Line("staging_stop", 2, "null", "{\"cache_hit_bytes\": -5}"));
  EXPECT_EQ(phases.run_start_ms, std::nullopt);
  EXPECT_THAT(phases.epochs, IsEmpty());
  EXPECT_EQ(phases.declared_cache_bytes, 0);
}

TEST(BytesTest, EachPartOfARunHasItsOwn) {
  const Series series = Grown({{"run.read", kHonest}, {"disk.vda.read", kHonest}});
  const std::vector<PhaseBytes> parts = BytesByPhase(NodeBytes(&series), PhasesOf(TinyLog()));
  std::vector<std::string> lines;
  for (const PhaseBytes& part : parts)
    lines.push_back(
        absl::StrCat(part.phase, ": ", *part.read.FromStorage() / kMega, " in ", part.seconds));
  EXPECT_THAT(lines, ElementsAre("before the clock: 5 in 3", "before epoch 1: 20 in 2",
                                 "epoch 1: 75 in 3", "epoch 2: 0 in 3"));
  EXPECT_FALSE(parts[0].read.servers.has_value()) << "there are none";
}

TEST(BytesTest, BetweenTwoSamplesTimeDecides) {
  const Series series = Grown({{"disk.vda.read", {10, 20}}, {"disk.vdb.read", {2, 2}}});
  const NodeBytes bytes(&series);
  EXPECT_DOUBLE_EQ(*bytes.Between(50 * kSampleNs, 50 * kSampleNs + kSampleNs / 4).disks, 3 * kMega);
  EXPECT_DOUBLE_EQ(*bytes.Between(50 * kSampleNs, 52 * kSampleNs).disks, 34 * kMega);
}

TEST(BytesTest, WhatIsMissingIsNotGuessed) {
  Series series = Grown({{"run.read", kHonest}, {"disk.vda.read", kHonest}});
  series.columns[0][4] = kMissing;
  const BytesRead read = NodeBytes(&series).Between(53 * kSampleNs, 54 * kSampleNs);
  EXPECT_FALSE(read.run.has_value());
  EXPECT_TRUE(read.disks.has_value());
  EXPECT_FALSE(NodeBytes(&series).Between(0, 54 * kSampleNs).disks.has_value())
      << "long before the first sample";
}

TEST(BytesTest, ANodeThatLiesAboutItsClockHarmsNothing) {
  Series series = Grown({{"disk.vda.read", kHonest}});
  series.header.wall_us = std::numeric_limits<int64_t>::min();
  series.header.node_ns = std::numeric_limits<int64_t>::max();
  series.at_ns[0] = std::numeric_limits<int64_t>::min();
  series.columns[0][1] = std::numeric_limits<int64_t>::max();
  series.columns[0][2] = std::numeric_limits<int64_t>::min() + 1;
  BytesByPhase(NodeBytes(&series), PhasesOf(TinyLog()));
  EXPECT_NE(PassOf(series, Caches("cold"), TinyLog()).unknown, "");
}

TEST(FirstPassTest, AllOfItFromStorageIsFine) {
  const FirstPass pass = PassOf(Grown({{"disk.vda.read", kHonest}}), Caches("cold"), TinyLog());
  EXPECT_EQ(pass.unknown, "");
  EXPECT_DOUBLE_EQ(*pass.Share(), 1.0);
  EXPECT_FALSE(pass.IsShort());
}

TEST(FirstPassTest, NothingFromStorageIsUnexplainedWhereCachesWereCold) {
  const Series series = Grown({{"run.read", kNothing}, {"disk.vda.read", kNothing}});
  const FirstPass pass = PassOf(series, Caches("bounded"), TinyLog());
  EXPECT_TRUE(pass.IsShort());
  EXPECT_TRUE(pass.IsUnexplained());
  EXPECT_THAT(pass.Sentence(), HasSubstr("0.0 MB of 100.0 MB of training data (0.0 %)"));
  EXPECT_FALSE(PassOf(series, Caches("unknown"), TinyLog()).IsUnexplained());
  EXPECT_TRUE(PassOf(series, Caches("unknown"), TinyLog()).IsShort());
}

TEST(FirstPassTest, WhatOthersSentOrALogDeclaresExplains) {
  const std::vector<int64_t> network(12, 20);
  EXPECT_FALSE(PassOf(Grown({{"disk.vda.read", kNothing}, {"network.eth0.received", network}}),
                      Caches("cold"), TinyLog())
                   .IsUnexplained());
  const std::string declared =
      Line("staging_start", -2, "null", "{\"cache_hit_bytes\": 100000000}") + TinyLog();
  EXPECT_FALSE(PassOf(Grown({{"disk.vda.read", kNothing}}), Caches("cold"), declared).IsShort());
}

TEST(FirstPassTest, ALogThatTrainsOnFewerSamplesNeedsFewer) {
  const std::vector<int64_t> half = {50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_TRUE(PassOf(Grown({{"disk.vda.read", half}}), Caches("cold"), TinyLog()).IsShort());
  const std::string log = Line("train_samples", -3, "50") + TinyLog();
  EXPECT_FALSE(PassOf(Grown({{"disk.vda.read", half}}), Caches("cold"), log).IsShort());
}

TEST(FirstPassTest, WhatIsNotKnownAccusesNobody) {
  const Series none = Grown({{"disk.vda.read", kNothing}});
  const auto unknown = [&none](const std::string& caches) {
    const FirstPass pass = PassOf(none, caches, TinyLog());
    EXPECT_FALSE(pass.IsShort()) << caches;
    return pass.unknown;
  };
  for (const char* other : {"tmpfs", "zfs", "btrfs", "overlay", "gpfs", "0x123"})
    EXPECT_THAT(unknown(Caches("cold", other)), HasSubstr(other));
  EXPECT_THAT(unknown(Caches("cold", "nfs")), HasSubstr("gap")) << "its client tells nothing";
  EXPECT_THAT(unknown(Caches("cold", "ext4", ", \"files_elsewhere\": 3")),
              HasSubstr("3 files of the dataset lie on another"));
  EXPECT_THAT(unknown(Caches("warm", "ext4", ", \"other_runs\": 1")), HasSubstr("other runs"));
  EXPECT_THAT(unknown("{\"coldness\": \"cold\", \"file_system\": \"ext4\"}"),
              HasSubstr("how large"));
  EXPECT_THAT(unknown("no JSON"), HasSubstr("no counter tells"));
  const RunPhases phases = PhasesOf(TinyLog());
  const NodePass node = NodePassOf(3, phases, nullptr, Caches("cold"));
  EXPECT_EQ(FirstPassOf(phases, std::span(&node, 1), 1, 100).unknown, "node 3: no telemetry");
  const NodePass whole = NodePassOf(0, phases, &none, Caches("cold"));
  EXPECT_THAT(FirstPassOf(phases, std::span(&whole, 1), 2, 100).unknown, HasSubstr("1 of 2 nodes"));
  EXPECT_THAT(PassOf(none, Caches("cold"), Line("run_start", 0)).unknown, HasSubstr("no epoch"));
}

TEST(FirstPassTest, TelemetryThatEndsEarlyOrHasAGapIsNotKnown) {
  const Series cut = Grown({{"disk.vda.read", {0, 0, 0, 0}}});
  EXPECT_THAT(PassOf(cut, Caches("cold"), TinyLog()).unknown, HasSubstr("ends before epoch 1"));
  Series holed = Grown({{"disk.vda.read", kNothing}});
  holed.columns[0][8] = kMissing;  // the sample at the end of epoch 1
  EXPECT_THAT(PassOf(holed, Caches("cold"), TinyLog()).unknown, HasSubstr("gap"));
}

TEST(FirstPassTest, ServersOfNetworkFileSystemsAreStorage) {
  EXPECT_FALSE(PassOf(Grown({{"server.nfs.read", kHonest}, {"disk.vda.read", kNothing}}),
                      Caches("cold", "nfs"), TinyLog())
                   .IsShort());
}

TEST(FirstPassTest, AllNodesTogetherReadItOnce) {
  const RunPhases phases = PhasesOf(TinyLog());
  const std::vector<int64_t> half = {50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const Series series = Grown({{"disk.vda.read", half}});
  const std::vector<NodePass> nodes = {NodePassOf(0, phases, &series, Caches("cold")),
                                       NodePassOf(1, phases, &series, Caches("cold"))};
  EXPECT_DOUBLE_EQ(*FirstPassOf(phases, nodes, 2, 100).Share(), 1.0);
}

}  // namespace
}  // namespace assay::telemetry
