#include "common/node_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kUncertaintyUs = 400;
constexpr int64_t kRunStartMs = 1'704'067'200'000;
constexpr double kStartS = 100;

// Clocks of a run of ten minutes, by what they show at a second of the real time. The coordinator's
// began 5000 s before.
struct Node {
  std::function<double(double at_s)> clock_s;     // of the hardware
  std::function<double(double at_s)> wall_ahead;  // seconds
  double mono_ahead_s = 7;                        // of the hardware's

  int64_t Ns(double at_s) const { return std::llround(clock_s(at_s) * 1e9); }
  int64_t MonoNs(double at_s) const { return Ns(at_s) + std::llround(mono_ahead_s * 1e9); }
  ClockSample SampleAt(double at_s, int64_t error_us, const std::string& boot_id = "boot") const {
    return {.boot_id = boot_id,
            .wall_us = kRunStartMs * 1000 + std::llround((at_s - kStartS + wall_ahead(at_s)) * 1e6),
            .node_ns = Ns(at_s),
            .mono_ns = MonoNs(at_s),
            .offset_us = Ns(at_s) / 1000 - std::llround((5000 + at_s) * 1e6) + error_us,
            .uncertainty_us = kUncertaintyUs};
  }
  // Off by what they may be, now this way, now the other.
  std::vector<ClockSample> Samples(double every_s = 10) const {
    std::vector<ClockSample> samples;
    for (double at_s = 95; at_s <= 705; at_s += every_s)
      samples.push_back(SampleAt(at_s, samples.size() % 2 == 0 ? kUncertaintyUs : -kUncertaintyUs));
    return samples;
  }
};

double NotAhead(double /*at_s*/) {
  return 0;
}

Node Rank0() {
  return {.clock_s = [](double at_s) { return 40 + at_s; }, .wall_ahead = NotAhead};
}
Node Fast() {
  return {.clock_s = [](double at_s) { return 9 + at_s * (1 + 200e-6); }, .wall_ahead = NotAhead};
}

LogStart StartOf(const Node& rank0) {
  return {.run_start_ms = kRunStartMs, .node_ns = rank0.Ns(kStartS)};
}

// Every half second of the run the carried time is as far off as it says, at most; returns how far
// that is at most.
int64_t ExpectBound(const NodeClock& clock, const Node& node, const Node& rank0,
                    double until_s = 705) {
  int64_t worst_ns = 0;
  for (double at_s = 90; at_s <= until_s; at_s += 0.5) {
    const CarriedTime carried = clock.AtNodeZero(node.Ns(at_s));
    EXPECT_LE(std::abs(carried.at_ns - rank0.Ns(at_s)), carried.error_ns + 1000) << at_s;
    worst_ns = std::max(worst_ns, carried.error_ns);
  }
  return worst_ns;
}

TEST(NodeClockTest, AClockThatDriftsIsCarriedOverAllTheTime) {
  const Node rank0 = Rank0();
  const Node fast = Fast();

  const std::optional<NodeClock> clock =
      NodeClock::Of(StartOf(rank0), rank0.Samples(), fast.Samples());

  ASSERT_TRUE(clock.has_value());
  // By offsets of the beginning alone it would be off by 120 ms at the end. Both uncertainties,
  // what the samples seem to gain by them, the drift of ten seconds, and 600 ppm before the first
  // sample.
  EXPECT_LT(ExpectBound(*clock, fast, rank0), 10 * kMillisecond);
  EXPECT_LT(clock->AtNodeZero(fast.Ns(400)).error_ns, 6 * kMillisecond);
}

TEST(NodeClockTest, AWallClockThatIsSetChangesNothing) {
  Node rank0 = Rank0();
  Node fast = Fast();
  const NodeClock before = *NodeClock::Of(StartOf(rank0), rank0.Samples(), fast.Samples());

  fast.wall_ahead = [](double at_s) { return at_s < 300 ? 0.0 : 30.0; };
  rank0.wall_ahead = [](double at_s) { return at_s < 250 ? 0.0 : -30.0; };
  const NodeClock after = *NodeClock::Of(StartOf(rank0), rank0.Samples(), fast.Samples());

  for (const double at_s : {99.0, 299.0, 301.0, 650.0}) {
    EXPECT_EQ(after.AtNodeZero(fast.Ns(at_s)), before.AtNodeZero(fast.Ns(at_s)));
    EXPECT_EQ(after.ByLog(fast.MonoNs(at_s)), before.ByLog(fast.MonoNs(at_s)));
  }
}

TEST(NodeClockTest, ATouchStandsOnTheClockOfTheLog) {
  const Node rank0 = Rank0();
  const Node fast = Fast();
  const NodeClock clock = *NodeClock::Of(StartOf(rank0), rank0.Samples(), fast.Samples());

  const std::optional<CarriedTime> touch = clock.ByLog(fast.MonoNs(kStartS + 1.5));

  ASSERT_TRUE(touch.has_value());
  EXPECT_NEAR(static_cast<double>(touch->at_ns - kRunStartMs * kMillisecond) * 1e-9, 1.5,
              static_cast<double>(touch->error_ns) * 1e-9);
  EXPECT_LT(touch->error_ns, 6 * kMillisecond);
  EXPECT_EQ(clock.ByLog(0), std::nullopt) << "a record without the clock that nobody sets";
  EXPECT_EQ(NodeClock(StartOf(rank0)).ByLog(1), std::nullopt) << "its wall clock is the log's";
}

// What it did not count may have passed at any time between two samples.
TEST(NodeClockTest, ANodeThatStoodStillIsAsUncertainAsThat) {
  const Node rank0 = Rank0();
  const Node paused{
      .clock_s = [](double at_s) { return at_s < 297 ? at_s : std::max(297.0, at_s - 5); },
      .wall_ahead = NotAhead};
  const NodeClock clock = *NodeClock::Of(StartOf(rank0), rank0.Samples(), paused.Samples());

  ExpectBound(clock, paused, rank0);
  EXPECT_GT(clock.AtNodeZero(paused.Ns(296)).error_ns, 5 * kSecond);
  EXPECT_LT(clock.AtNodeZero(paused.Ns(320)).error_ns, 4 * kMillisecond);
}

TEST(NodeClockTest, WhereNothingIsMeasuredTheBoundGrows) {
  const Node rank0 = Rank0();
  const Node fast = Fast();
  std::vector<ClockSample> first = fast.Samples();
  first.resize(2);
  const NodeClock clock = *NodeClock::Of(StartOf(rank0), rank0.Samples(), first);

  EXPECT_GT(ExpectBound(clock, fast, rank0), 350 * kMillisecond);
}

TEST(NodeClockTest, ACoordinatorThatIsBootedInBetweenIsAnotherClock) {
  const Node rank0 = Rank0();
  const Node fast = Fast();
  std::vector<ClockSample> zero = rank0.Samples();
  std::vector<ClockSample> node = fast.Samples();
  for (std::vector<ClockSample>* const samples : {&zero, &node})
    for (size_t i = samples->size() / 2; i < samples->size(); ++i) {
      (*samples)[i].boot_id = "other";
      (*samples)[i].offset_us += 5'000'000'000;
    }
  EXPECT_LT(ExpectBound(*NodeClock::Of(StartOf(rank0), zero, node), fast, rank0),
            12 * kMillisecond);
}

TEST(NodeClockTest, WithoutAClockInCommonNothingIsKnown) {
  const Node rank0 = Rank0();
  const Node fast = Fast();
  EXPECT_FALSE(NodeClock::Of(StartOf(rank0), rank0.Samples(), {}).has_value());
  EXPECT_FALSE(NodeClock::Of(StartOf(rank0), {}, fast.Samples()).has_value());
  EXPECT_FALSE(
      NodeClock::Of(StartOf(rank0), rank0.Samples(), {fast.SampleAt(100, 0, "other")}).has_value());
}

TEST(NodeClockTest, ADamagedFileIsReadAsFarAsItGoes) {
  const std::vector<ClockSample> samples = Fast().Samples();
  const std::string whole = ClockSampleText(samples[0]) + ClockSampleText(samples[1]);
  EXPECT_THAT(ReadClockSamples(whole), ElementsAre(samples[0], samples[1]));
  EXPECT_THAT(ReadClockSamples(whole.substr(0, whole.size() - 9)), ElementsAre(samples[0]));
  EXPECT_THAT(ReadClockSamples("\xff{\n[]\n7\n\n" + whole), SizeIs(2));
  EXPECT_THAT(ReadClockSamples(R"({"boot_id": "b", "node_ns": 5, "offset_us": 1,)"
                               R"( "uncertainty_us": 2})"),
              SizeIs(1))
      << "of an agent of before, which kept no mono_ns";
}

// Whoever controls a node may write anything: what comes of it is a number, and costs little.
TEST(NodeClockTest, NumbersThatNoClockShowsAreLeftOut) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const char* member : {"node_ns", "mono_ns", "offset_us", "uncertainty_us"})
    for (const int64_t value : {most, -most - 1, int64_t{1} << 61, -(int64_t{1} << 61)})
      EXPECT_THAT(ReadClockSamples(absl::StrCat(
                      R"({"boot_id": "b", "node_ns": 5, "offset_us": 1, "uncertainty_us": 1, ")",
                      member, "\": ", value, "}")),
                  IsEmpty())
          << member;

  const Node rank0 = Rank0();
  std::vector<ClockSample> hostile;
  for (int64_t i = 0; i < 100'000; ++i)
    hostile.push_back({.boot_id = i % 3 == 0 ? "boot" : absl::StrCat(i),
                       .node_ns = i % 2 == 0 ? int64_t{1} << 59 : i,
                       .mono_ns = (int64_t{1} << 59) - i,
                       .offset_us = (i % 5 - 2) * ((int64_t{1} << 59) / 2000),
                       .uncertainty_us = 3'600'000'000});
  const std::optional<NodeClock> clock = NodeClock::Of(StartOf(rank0), rank0.Samples(), hostile);
  ASSERT_TRUE(clock.has_value());
  for (const int64_t at_ns : {int64_t{0}, most, -most - 1, int64_t{1} << 59}) {
    EXPECT_GE(clock->AtNodeZero(at_ns).error_ns, 0);
    EXPECT_GE(clock->ByLog(at_ns).value_or(CarriedTime{}).error_ns, 0);
  }
}

}  // namespace
}  // namespace assay
