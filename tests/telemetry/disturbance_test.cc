// What a reviewer is told of a node that was not by itself; oracles are sums by hand.

#include "common/telemetry/disturbance.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kSamples = 101;
constexpr int64_t kEnd = (kSamples - 1) * kSecond;

// A node with one processor, sampled each second.
class DisturbanceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int64_t i = 0; i < kSamples; ++i)
      series_.at_ns.push_back(i * kSecond);
  }
  // Grows by as much each second.
  void Counter(const std::string& name, int64_t each_second) {
    series_.header.columns.push_back({name, "", true});
    std::vector<int64_t>& values = series_.columns.emplace_back();
    for (int64_t i = 0; i < kSamples; ++i)
      values.push_back(7 + i * each_second);
  }
  // `value` in the first `count` samples, then nothing.
  void Gauge(const std::string& name, int64_t value, int64_t count) {
    series_.header.columns.push_back({name, "", false});
    std::vector<int64_t>& values = series_.columns.emplace_back();
    for (int64_t i = 0; i < kSamples; ++i)
      values.push_back(i < count ? value : 0);
  }
  // In ms of each second: what was busy, what of it the run was, and what the host took.
  void Processor(int64_t busy, int64_t run, int64_t stolen) {
    Counter("cpu.user", busy);
    Counter("cpu.idle", 1000 - busy - stolen);
    Counter("cpu.steal", stolen);
    Counter("run.cpu", run);
  }
  std::vector<std::string> Notes() const { return DisturbancesOf(series_, 0, kEnd); }

  Series series_;
};

TEST_F(DisturbanceTest, AQuietNodeHasNoNotes) {
  Processor(940, 900, 10);
  Counter("paging.swapped_in", 2);  // 200 pages: 0.8 MiB
  Counter("pressure.memory.some", 9'000);
  Counter("cpu.throttled", 0);
  Gauge("gpu.0.throttle_reasons", 0x4, kSamples);  // its limit of power
  EXPECT_THAT(Notes(), IsEmpty());
  EXPECT_THAT(DisturbancesOf(Series(), 0, kEnd), IsEmpty());
}

TEST_F(DisturbanceTest, OthersAndTheHostAreTold) {
  Processor(980, 900, 15);
  EXPECT_THAT(Notes(), ElementsAre("others used 8.0 % of the processors",
                                   "the host of this virtual machine took 1.5 % of its processor "
                                   "time"));
}

TEST_F(DisturbanceTest, OneBadMinuteIsTold) {
  Processor(900, 900, 0);
  // Of 100 s the others had 27 s within one minute: 27 % on average, and 45 % in it.
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t extra_ms = std::min<int64_t>(i, 60) * 450;
    series_.columns[0][static_cast<size_t>(i)] = 7 + 450 * i + extra_ms;
    series_.columns[1][static_cast<size_t>(i)] = 7 + 550 * i - extra_ms;
    series_.columns[3][static_cast<size_t>(i)] = 7 + 450 * i;
  }
  EXPECT_THAT(Notes(), ElementsAre("others used 27.0 % of the processors",
                                   "others used 45.0 % of the processors in one minute"));
}

TEST_F(DisturbanceTest, ALackOfMemoryIsTold) {
  Counter("paging.swapped_in", 256);  // 1 MiB each second
  Counter("pressure.memory.some", 25'000);
  EXPECT_THAT(Notes(), ElementsAre("100.0 MiB were read back from swap",
                                   "some process waited for memory in 2.5 % of the time"));
}

TEST_F(DisturbanceTest, HeatIsTold) {
  Counter("cpu.throttled", 3);
  Gauge("gpu.0.throttle_reasons", 0x4, kSamples);
  Gauge("gpu.1.throttle_reasons", 0x44, 20);
  EXPECT_THAT(Notes(), ElementsAre("heat held processors down 300 times",
                                   "heat or a brake held the clocks of gpu.1 down in 19.8 % of its "
                                   "samples"));
}

TEST_F(DisturbanceTest, ALeapSecondIsNamed) {
  Gauge("clock.status", 0x2001, kSamples);  // in nanoseconds, steered
  EXPECT_THAT(Notes(), IsEmpty());
  Gauge("clock.status", 0x2011, 2);
  EXPECT_THAT(Notes(),
              ElementsAre("the clock had been told of a leap second at the end of its day"));
}

TEST_F(DisturbanceTest, WhatIsOutsideOfTheRunDoesNotCount) {
  Gauge("gpu.1.throttle_reasons", 0x44, 20);
  EXPECT_THAT(DisturbancesOf(series_, 30 * kSecond, kEnd), IsEmpty());
}

}  // namespace
}  // namespace assay::telemetry
