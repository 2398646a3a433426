#include "common/telemetry/energy.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/rules/power.h"
#include "tests/support/status_matchers.h"

namespace assay::telemetry {
namespace {

using ::assay::testing::IsOkAndHolds;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kWallMs = 1'700'000'000'000;
constexpr int64_t kNodeNs = 5 * kSecondNs;

// Samples at these seconds behind kWallMs, of columns in order.
Series At(const std::vector<double>& seconds, const std::vector<Column>& columns,
          const std::vector<std::vector<int64_t>>& values) {
  Series series;
  series.header = {
      .boot_id = "b", .wall_us = kWallMs * 1000, .node_ns = kNodeNs, .columns = columns};
  for (const double second : seconds)
    series.at_ns.push_back(kNodeNs + static_cast<int64_t>(second * static_cast<double>(kSecondNs)));
  series.columns = values;
  return series;
}

// A second apart, from 0 to `count` - 1: a counter in uJ that grows by `watts` each second.
Series Steady(const std::string& name, int count, int64_t watts) {
  std::vector<double> seconds;
  std::vector<int64_t> energy;
  for (int i = 0; i < count; ++i) {
    seconds.push_back(i);
    energy.push_back(1'000'000'000 + i * watts * 1'000'000);
  }
  return At(seconds, {{name, "uJ", true}}, {energy});
}

RunSpan SpanAt(const Series& series, double begin_s, double end_s) {
  return SpanOf(series.header, kWallMs + static_cast<int64_t>(begin_s * 1000),
                kWallMs + static_cast<int64_t>(end_s * 1000));
}

TEST(RunEnergyTest, ACounterGivesTheEnergyOfTheRunAndWhereItMustLie) {
  const Series series = Steady("energy.node.cray", 80, 400);
  const std::vector<MeterPower> powers = MeterPowers(series, SpanAt(series, 3.5, 73.5));

  ASSERT_THAT(powers, SizeIs(1));
  const MeterPower& power = powers[0];
  EXPECT_TRUE(power.is_node);
  EXPECT_EQ(power.begin_wall_ms, kWallMs + 3000);
  EXPECT_THAT(power.readings, SizeIs(71));
  EXPECT_THAT(power.readings, Each(Field(&PowerReading::watts, 400.0)));
  EXPECT_NEAR(power.EnergyJ(70), 28'000, 1e-6);
  EXPECT_NEAR(power.low_j, 69 * 400, 1e-6) << "the seconds that lie wholly in the run";
  EXPECT_NEAR(power.high_j, 71 * 400, 1e-6) << "those that touch it";
  EXPECT_NEAR(power.longest_gap_s, 1, 1e-9);
  EXPECT_EQ(power.problem, "");
}

TEST(RunEnergyTest, TheOfficialFormulaFindsTheSameEnergyInThePowerLog) {
  // Power that changes and samples that are not quite even.
  std::vector<double> seconds;
  std::vector<int64_t> energy;
  for (int64_t i = 0; i < 100; ++i) {
    seconds.push_back(static_cast<double>(i) * 1.003 + static_cast<double>(i % 3) * 0.01);
    energy.push_back(7'000'000 + i * 310'000'000 + (i % 7) * 40'000'000);
  }
  const Series series = At(seconds, {{"energy.node.cray", "uJ", true}}, {energy});
  const MeterPower power = MeterPowers(series, SpanAt(series, 4.2, 93.7))[0];
  const std::string log = PowerLog(power, "nid001");

  EXPECT_THAT(rules::NodeEnergy(log, 89'500), IsOkAndHolds(DoubleNear(power.EnergyJ(89.5), 1e-6)));
  EXPECT_GE(power.EnergyJ(89.5), power.low_j);
  EXPECT_LE(power.EnergyJ(89.5), power.high_j);
  const std::vector<std::string> lines = absl::StrSplit(log, '\n', absl::SkipEmpty());
  EXPECT_THAT(lines.front(),
              HasSubstr(R"("event_type": "INTERVAL_START", "key": "power_measurement_start")"));
  EXPECT_THAT(lines[1], HasSubstr(R"("key": "conversion_eff", "value": 1)"));
  EXPECT_THAT(lines[1], HasSubstr(R"("measurement_type": "DC")"));
  EXPECT_THAT(lines[2], HasSubstr(R"("host": "nid001")"));
  EXPECT_THAT(lines.back(),
              HasSubstr(R"("event_type": "INTERVAL_END", "key": "power_measurement_stop")"));
}

TEST(RunEnergyTest, PowerAloneIsSummedAndBoundedByItsNeighbours) {
  const Series series = At({0, 1, 2, 3}, {{"power.node.power_meter", "mW", false}},
                           {{100'000, 200'000, 400'000, 100'000}});
  const MeterPower power = MeterPowers(series, SpanAt(series, 0, 3))[0];
  EXPECT_NEAR(power.EnergyJ(3), 200 + 400 + 100, 1e-9);
  EXPECT_NEAR(power.low_j, 100 + 200 + 100, 1e-9);
  EXPECT_NEAR(power.high_j, 200 + 400 + 400, 1e-9);
  EXPECT_THAT(PowerLog(power, "a"), HasSubstr(R"("measurement_type": "AC")"));
}

TEST(RunEnergyTest, TheLongestTimeWithoutAReadingIsTold) {
  const Series series = At({0, 1, 2, 3, 4, 5, 6}, {{"energy.node.cray", "uJ", true}},
                           {{0, 1, 2, kMissing, kMissing, 5, 6}});
  const MeterPower power = MeterPowers(series, SpanAt(series, 1, 6))[0];
  EXPECT_NEAR(power.longest_gap_s, 3, 1e-9);
  EXPECT_NEAR(power.gap_at_s, 1, 1e-9) << "seconds from run_start";
  EXPECT_EQ(power.problem, "") << "the counter has gone on meanwhile";
}

TEST(RunEnergyTest, ACounterThatIsSetBackHasNoEnergy) {
  const Series back = At({0, 1, 2, 3}, {{"energy.node.cray", "uJ", true}}, {{900, 1000, 10, 20}});
  EXPECT_THAT(MeterPowers(back, SpanAt(back, 0, 3))[0].problem, HasSubstr("set back at 1 s"));
  // Taken for one that began again at the end of its range: 262 kJ within a second.
  const Series wrapped = At({0, 1, 2}, {{"energy.rapl.package-0", "uJ", true}},
                            {{1000, 262'143'328'850, 262'143'328'860}});
  EXPECT_THAT(MeterPowers(wrapped, SpanAt(wrapped, 0, 2))[0].problem, HasSubstr("showed 262143 W"));
  EXPECT_EQ(MeterPowers(wrapped, SpanAt(wrapped, 1, 2))[0].problem, "") << "before the run";
}

TEST(RunEnergyTest, AFileThatEndsBeforeTheRunHasNoEnergy) {
  const Series series = Steady("energy.node.cray", 10, 100);
  EXPECT_THAT(MeterPowers(series, SpanAt(series, 1, 12))[0].problem,
              HasSubstr("not read for 3.0 s"));
  EXPECT_THAT(MeterPowers(series, SpanAt(series, 20, 30)), IsEmpty());
  const MeterPower nearly = MeterPowers(series, SpanAt(series, 1, 10))[0];
  EXPECT_EQ(nearly.problem, "");
  EXPECT_NEAR(nearly.high_j, 900, 1e-6) << "as the highest power that was seen";
}

TEST(RunEnergyTest, PartsAddUpAndWholeNodesComeFirst) {
  const Series series = At({0, 1},
                           {{"energy.rapl.package-0", "uJ", true},
                            {"energy.rapl.dram-0", "uJ", true},
                            {"power.node.power_meter", "uW", false},
                            {"energy.gpu.0", "uJ", true},
                            {"power.gpu.0", "mW", false},
                            {"cpu.user", "ms", true},
                            {"energy.node.cray", "uJ", true}},
                           {{0, 50'000'000},
                            {0, 7'000'000},
                            {300'000'000, 300'000'000},
                            {0, 200'000'000},
                            {1, 1},
                            {0, 1000},
                            {0, 310'000'000}});
  std::vector<std::string> found;
  for (const MeterPower& power : MeterPowers(series, SpanAt(series, 0, 1)))
    found.push_back(
        absl::StrCat(power.meter, power.is_node ? " node " : " part ", power.EnergyJ(1)));
  EXPECT_THAT(found, ::testing::ElementsAre("node.cray node 310", "node.power_meter node 300",
                                            "gpu part 200", "rapl part 57"));
}

TEST(RunEnergyTest, APlatformHoldsItsParts) {
  const Series series = At({0, 1},
                           {{"energy.rapl.package-0", "uJ", true},
                            {"energy.rapl.psys", "uJ", true},
                            {"energy.rapl.dram-0", "uJ", true}},
                           {{0, 50'000'000}, {0, 80'000'000}, {0, 7'000'000}});
  EXPECT_NEAR(MeterPowers(series, SpanAt(series, 0, 1))[0].EnergyJ(1), 80, 1e-9);
}

TEST(RunEnergyTest, AMeterIsTheNodesWhereTheOperatorHasComparedIt) {
  Series series = Steady("energy.rapl.psys", 5, 100);
  EXPECT_FALSE(MeterPowers(series, SpanAt(series, 0, 4))[0].is_node);
  series.header.comparisons = {{"rapl", "WT310, 2 %"}};
  const MeterPower power = MeterPowers(series, SpanAt(series, 0, 4))[0];
  EXPECT_TRUE(power.is_node);
  EXPECT_THAT(PowerLog(power, "a"), HasSubstr(R"("compared_with": "WT310, 2 %")"));
}

TEST(RunEnergyTest, AnotherNodesClockWidensTheBound) {
  const Series series = Steady("energy.node.cray", 20, 100);
  RunSpan span = SpanAt(series, 5, 10);
  EXPECT_NEAR(MeterPowers(series, span)[0].low_j, 500, 1e-6);
  span.uncertainty_ns = kSecondNs / 10;
  const MeterPower power = MeterPowers(series, span)[0];
  EXPECT_NEAR(power.low_j, 300, 1e-6);
  EXPECT_NEAR(power.high_j, 700, 1e-6);
}

TEST(RunEnergyTest, AFileThatAnybodyHasMadeIsReadWithoutHarm) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t clock : {kLeast, int64_t{0}, kMost}) {
    Series series;
    series.header = {.boot_id = "b", .wall_us = clock, .node_ns = clock};
    series.header.columns = {{"energy.node.cray", "uJ", true}, {"power.node.x", "", false}};
    series.at_ns = {kLeast, -1, 0, 1'000'000'000, kMost, 5, 2'000'000'000};
    series.columns = {{1, kMost, kLeast + 1, 0, 7, kMost, kLeast + 1},
                      {1, kMost, kLeast + 1, 0, 7, kMost, kLeast + 1}};
    for (const int64_t edge : {kLeast, int64_t{0}, kMost})
      for (const MeterPower& power : MeterPowers(series, SpanOf(series.header, edge, kMost)))
        EXPECT_NE(power.problem, "") << power.meter;
  }
}

// A meter over a network, from second 0 to 79, that does not answer from 20 to 24.
Series Asked(bool has_counter) {
  Series series = Steady("energy.node.redfish", 80, 400);
  std::vector<int64_t> power(80, 400'000);
  std::vector<int64_t> state(80, static_cast<int64_t>(MeterState::kReads));
  for (size_t i = 20; i < 25; ++i) {
    series.columns[0][i] = power[i] = kMissing;
    state[i] = static_cast<int64_t>(MeterState::kRefused);
  }
  if (!has_counter) series.columns[0].assign(80, kMissing);
  series.header.columns.push_back({"power.node.redfish", "mW", false});
  series.header.columns.push_back({"meter.node.redfish", "state", false});
  series.columns.push_back(power);
  series.columns.push_back(state);
  return series;
}

TEST(AskedMeterEnergyTest, PowerCountsWhereThereIsNoCounter) {
  for (const bool has_counter : {true, false}) {
    const Series series = Asked(has_counter);
    const std::vector<MeterPower> powers = MeterPowers(series, SpanAt(series, 3.5, 73.5));
    ASSERT_THAT(powers, SizeIs(1));
    EXPECT_EQ(powers[0].meter, "node.redfish");
    EXPECT_NEAR(powers[0].EnergyJ(70), 28'000, 1e-6);
  }
}

TEST(AskedMeterEnergyTest, AGapSaysWhyAndSilenceToo) {
  Series series = Asked(true);
  const std::vector<MeterPower> powers = MeterPowers(series, SpanAt(series, 3.5, 73.5));
  ASSERT_THAT(powers, SizeIs(1));
  EXPECT_NEAR(powers[0].longest_gap_s, 6, 1e-9);
  EXPECT_EQ(powers[0].gap_why, "it refuses the credentials");
  EXPECT_THAT(SilentMeters(series), IsEmpty());

  series.columns[0].assign(80, kMissing);
  series.columns[1].assign(80, kMissing);
  series.columns[2].assign(80, static_cast<int64_t>(MeterState::kUnverified));
  EXPECT_THAT(MeterPowers(series, SpanAt(series, 3.5, 73.5)), IsEmpty());
  EXPECT_THAT(SilentMeters(series),
              ::testing::ElementsAre("node.redfish: its certificate cannot be verified"));
  series.columns[2].assign(80, int64_t{1} << 60);  // anybody may have made the file
  EXPECT_THAT(SilentMeters(series), SizeIs(1));
}

TEST(CheckTest, WhatOthersSayOfTheNodeComesLastAndIsNoMeter) {
  Series series = Steady("energy.node.cray", 80, 400);
  std::vector<int64_t> slurm(80, kMissing);
  slurm[1] = slurm[61] = 500'000;
  series.header.columns.push_back({"check.power.slurm", "mW", false});
  series.header.columns.push_back({"check.energy.slurm", "uJ", true});
  series.columns.push_back(slurm);
  series.columns.emplace_back(80, kMissing);
  const std::vector<MeterPower> powers = MeterPowers(series, SpanAt(series, 3.5, 73.5));
  ASSERT_THAT(powers, SizeIs(2));
  EXPECT_EQ(powers[1].meter, "slurm");
  EXPECT_TRUE(powers[1].is_check);
  EXPECT_FALSE(powers[1].is_node);
  EXPECT_NEAR(powers[1].EnergyJ(70), 35'000, 1e-6);
}

}  // namespace
}  // namespace assay::telemetry
