#include "common/rules/witnessed_time.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::rules {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kWallStartUs = 1'704'067'200'000'000;  // 2024-01-01T00:00:00Z
constexpr int64_t kRunSeconds = 600;

// A node and a coordinator whose clocks run as the test says, second by second of the real time.
class WitnessedTimeTest : public ::testing::Test {
 protected:
  // The records of a run of ten minutes, each seen a millisecond after it was stamped.
  void Run(int64_t wall_step_s = 0) {
    Arrive("init_start", 0);
    Arrive("run_start", 100);
    Arrive("run_stop", 100 + kRunSeconds, wall_step_s);
  }
  void Arrive(const char* key, int64_t at_s, int64_t wall_step_s = 0) {
    const int64_t node_ns = NodeNs(at_s);
    const int64_t wall_us = kWallStartUs + wall_step_s * 1'000'000 + node_ns / 1000;
    Arrival arrival{.record = {key, static_cast<int64_t>(arrivals_.size()) + 1,
                               static_cast<double>(wall_us / 1000)},
                    .wall_us = wall_us + 1000,
                    .mono_ns = 7 * kSecond + node_ns,
                    .raw_ns = 9 * kSecond + node_ns,
                    .boot_ns = 7 * kSecond + node_ns};
    arrivals_.push_back(arrival);
  }
  // What the node's clocks show then: they stood still for the pause, or run fast.
  int64_t NodeNs(int64_t at_s) const {
    const int64_t paused_s = at_s > pause_at_s_ ? pause_s_ : 0;
    return static_cast<int64_t>(static_cast<double>((at_s - paused_s) * kSecond) * rate_);
  }
  void SampleEvery(int64_t seconds, int64_t uncertainty_us = 500) {
    for (int64_t at_s = 95; at_s <= 105 + kRunSeconds; at_s += seconds)
      Sample(at_s, uncertainty_us);
  }
  void Sample(int64_t at_s, int64_t uncertainty_us, const char* boot_id = "boot") {
    const int64_t node_ns = 9 * kSecond + NodeNs(at_s);
    samples_.push_back({.boot_id = boot_id,
                        .wall_us = kWallStartUs + NodeNs(at_s) / 1000,
                        .node_ns = node_ns,
                        .offset_us = node_ns / 1000 - at_s * 1'000'000,
                        .uncertainty_us = uncertainty_us});
  }
  std::vector<std::string> Found() const {
    std::vector<std::string> found;
    for (const Finding& finding : CheckTimes(*TimeOf(arrivals_, samples_), arrivals_, samples_)) {
      EXPECT_EQ(finding.severity, Severity::kWarning);
      found.push_back(finding.rule_id + ": " + finding.found);
    }
    return found;
  }

  int64_t pause_at_s_ = 0;
  int64_t pause_s_ = 0;
  double rate_ = 1;
  std::vector<Arrival> arrivals_;
  std::vector<ClockSample> samples_;
};

TEST_F(WitnessedTimeTest, WithoutACoordinatorsClockTheQuartzIsTheBound) {
  Run();
  const WitnessedTime time = *TimeOf(arrivals_, samples_);
  EXPECT_DOUBLE_EQ(time.node_ms, 600'000);
  // 2 ms of the stamps, 6 ms of the follower, 100 ppm.
  EXPECT_DOUBLE_EQ(time.error_ms, 2 + 6 + 60);
  EXPECT_FALSE(time.coordinator.has_value());
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(WitnessedTimeTest, TheCoordinatorsClockMeasuresTheQuartz) {
  rate_ = 1 + 50e-6;
  Run();
  SampleEvery(10);
  const WitnessedTime time = *TimeOf(arrivals_, samples_);
  EXPECT_NEAR(time.node_ms, 600'030, 1e-6);
  ASSERT_TRUE(time.coordinator.has_value());
  EXPECT_NEAR(time.coordinator->run_ms, 600'000, time.coordinator->error_ms);
  EXPECT_NEAR(time.error_ms, 2 + 6 + 30 + 2 * 0.5, 3);
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(WitnessedTimeTest, ALateFollowerWidensTheBound) {
  Run();
  arrivals_[2].late_ns = 40'000'000;
  EXPECT_DOUBLE_EQ(TimeOf(arrivals_, samples_)->error_ms, 2 + 40 + 60);
}

TEST_F(WitnessedTimeTest, AWallClockThatIsSetInMidRunDoesNotChangeTheWitnessedTime) {
  for (const int64_t step_s : {30, -30}) {
    arrivals_.clear();
    Run(step_s);
    EXPECT_DOUBLE_EQ(TimeOf(arrivals_, samples_)->node_ms, 600'000);
    EXPECT_THAT(
        Found(),
        ElementsAre(HasSubstr(step_s > 0 ? "R-CLK-003: 630.000 s by the log and 600.000 s by"
                                         : "R-CLK-003: 570.000 s by the log and 600.000 s by")));
  }
}

TEST_F(WitnessedTimeTest, AMachineThatIsPausedFromOutsideIsSeenByTheCoordinatorAlone) {
  pause_at_s_ = 302;
  pause_s_ = 5;
  Run();
  EXPECT_THAT(Found(), IsEmpty());
  SampleEvery(10);
  EXPECT_THAT(Found(), ElementsAre("R-CLK-004: the node's clocks stood still for 5.000 s between "
                                   "00:04:55.000Z and 00:05:00.000Z, by the coordinator's"));
  EXPECT_NEAR(TimeOf(arrivals_, samples_)->coordinator->run_ms, 600'000, 10);
  EXPECT_NEAR(TimeOf(arrivals_, samples_)->node_ms, 595'000, 1e-6);
}

TEST_F(WitnessedTimeTest, AReplyThatTookAsLongAsThePauseDoesNotHideIt) {
  pause_at_s_ = 302;
  pause_s_ = 5;
  Run();
  for (int64_t at_s = 95; at_s <= 705; at_s += 10)
    Sample(at_s, at_s == 305 ? 5'000'000 : 500);
  EXPECT_THAT(Found(), ElementsAre(HasSubstr("stood still for 5.000 s")));
}

TEST_F(WitnessedTimeTest, AMachineThatIsSlowedDownIsSeen) {
  rate_ = 0.9;
  Run();
  SampleEvery(60);
  EXPECT_THAT(Found(), Each(HasSubstr("R-CLK-004: the node's clocks stood still for 6.0")));
  EXPECT_NEAR(TimeOf(arrivals_, samples_)->coordinator->run_ms, 600'000, 20);
}

TEST_F(WitnessedTimeTest, WhatHappensBeforeAndAfterTheRunIsNotItsMatter) {
  Run();
  Sample(10, 500);
  samples_.back().offset_us += 9'000'000;
  Sample(20, 500);
  SampleEvery(10);
  Sample(710, 500);
  Sample(720, 500);
  samples_.back().offset_us += 9'000'000;
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(WitnessedTimeTest, ACoordinatorThatWasBootedMeanwhileTellsNothing) {
  Run();
  Sample(99, 500, "one boot");
  Sample(699, 500, "another");
  samples_.back().offset_us -= 1'000'000'000;
  EXPECT_FALSE(TimeOf(arrivals_, samples_)->coordinator.has_value());
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(WitnessedTimeTest, OneSampleIsNoMeasurementOfARun) {
  arrivals_.clear();
  Arrive("run_start", 100);
  Arrive("run_stop", 104);
  Sample(99, 500);
  EXPECT_FALSE(TimeOf(arrivals_, samples_)->coordinator.has_value());
}

TEST_F(WitnessedTimeTest, TheTimeOfASuspendedNodeCounts) {
  Run();
  arrivals_[2].boot_ns += 5 * kSecond;
  EXPECT_DOUBLE_EQ(TimeOf(arrivals_, samples_)->node_ms, 605'000);
}

TEST_F(WitnessedTimeTest, ARunWithoutBothEndsHasNoTime) {
  Arrive("run_start", 100);
  EXPECT_EQ(TimeOf(arrivals_, samples_), std::nullopt);
  arrivals_.clear();
  Arrive("run_stop", 100);
  Arrive("run_start", 200);
  EXPECT_EQ(TimeOf(arrivals_, samples_), std::nullopt);
}

TEST_F(WitnessedTimeTest, ArrivalsOfAnOlderAgentCountByTheirMonotonicClock) {
  Run();
  for (Arrival& arrival : arrivals_)
    arrival.raw_ns = arrival.boot_ns = 0;
  EXPECT_DOUBLE_EQ(TimeOf(arrivals_, samples_)->node_ms, 600'000);
}

TEST_F(WitnessedTimeTest, SamplesAreReadAsTheyWereWritten) {
  SampleEvery(100);
  std::string text = "no JSON\n{}\n{\"boot_id\": 3}\n";
  for (const ClockSample& sample : samples_)
    text += ClockSampleText(sample);
  EXPECT_EQ(ReadClockSamples(text), samples_);
}

}  // namespace
}  // namespace assay::rules
