#include "worker/agent/pause_watch.h"

#include <poll.h>
#include <signal.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/rules/arrivals.h"
#include "tests/support/await.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/step_fixture.h"

namespace assay::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::SizeIs;

// A node whose beats come when the test says so.
class PauseWatchTest : public ::testing::Test {
 protected:
  static constexpr int64_t kIntervalNs = 100'000'000;

  // The next beat comes after so much time, of which the node was suspended for a part.
  void BeatAfter(double seconds, double suspended_s = 0) {
    const auto ns = [](double s) { return static_cast<int64_t>(s * 1e9); };
    now_.mono_ns += ns(seconds - suspended_s);
    now_.boot_ns += ns(seconds);
    now_.wall_ns += ns(seconds);
    watch_.Take(now_);
  }

  Beat now_{.wall_ns = 1'704'067'200'000'000'000, .mono_ns = 5, .boot_ns = 7};
  Hindrance hindrance_;
  int read_count_ = 0;
  PauseWatch watch_{now_, kIntervalNs, [this] {
                      ++read_count_;
                      return hindrance_;
                    }};
};

TEST_F(PauseWatchTest, LateBeatsOfABusyNodeAreCountedAndNoFault) {
  for (const double seconds : {0.1, 0.28, 0.36, 1.0, 0.1})
    BeatAfter(seconds);
  EXPECT_THAT(watch_.faults(), IsEmpty());
  EXPECT_EQ(watch_.beat_count(), 5);
  EXPECT_EQ(watch_.late_count(), 2);
  EXPECT_EQ(watch_.latest_ns(), 900'000'000);
}

TEST_F(PauseWatchTest, APauseIsToldWithItsLengthAndEnd) {
  BeatAfter(0.1);
  BeatAfter(8.1);
  BeatAfter(0.1);
  EXPECT_THAT(watch_.faults(), ElementsAre(NodeFault{"R-PAU-002",
                                                     "nothing was watched for 8.0 s until "
                                                     "00:00:08.200Z: something stopped the step"}));
}

TEST_F(PauseWatchTest, ASuspendedNodeIsToldThoughItsClockStoodStill) {
  BeatAfter(5.2, /*suspended_s=*/5.1);
  EXPECT_THAT(watch_.faults(),
              ElementsAre(NodeFault{"R-PAU-002",
                                    "nothing was watched for 5.1 s until "
                                    "00:00:05.200Z: the node was suspended for 5.1 "
                                    "s"}));
}

TEST_F(PauseWatchTest, AHostOrAnOverloadThatTookTheProcessorsIsNamed) {
  BeatAfter(2.1);
  hindrance_ = {.stolen_s = 1.5, .waited_s = 2.0};
  BeatAfter(3.1);
  ASSERT_THAT(watch_.faults(), SizeIs(2));
  EXPECT_EQ(watch_.faults()[1].found,
            "nothing was watched for 3.0 s until 00:00:05.200Z: its processors were a host's for "
            "1.5 s, none was free for 2.0 s");
}

TEST_F(PauseWatchTest, WhatIsReadIsOfThePauseAndSeldom) {
  for (int beat = 0; beat < 1000; ++beat)
    BeatAfter(0.1);
  EXPECT_EQ(read_count_, 10) << "at the start and every ten seconds";
}

TEST_F(PauseWatchTest, WhatWasLateInTheLastSecondIsKnown) {
  BeatAfter(0.4);
  BeatAfter(0.1);
  EXPECT_EQ(watch_.RecentLateNs(), 300'000'000);
  for (int beat = 0; beat < 11; ++beat)
    BeatAfter(0.1);
  EXPECT_EQ(watch_.RecentLateNs(), 0);
}

TEST_F(PauseWatchTest, AHundredAreKept) {
  for (int k = 0; k < 150; ++k)
    BeatAfter(2);
  EXPECT_THAT(watch_.faults(), SizeIs(100));
}

class PausedStepTest : public StepFixture {};

// Somebody who stops the watcher, and lets the ranks go on, is found out.
TEST_F(PausedStepTest, WritesDownWhenItStoodStillItself) {
  const std::string begun = run_.dir.Path("begun");
  const std::string go = run_.dir.Path("go");
  run_.Trainer("touch " + begun + "; until [ -e " + go + " ]; do sleep 0.01; done");
  const ProcessId step = Start();
  ASSERT_TRUE(testing::Await([&] { return FileExists(begun); }));
  ASSERT_EQ(kill(step.pid, SIGSTOP), 0);
  std::ofstream(directory_.ResultPath(run_.spec.run_number()), std::ios::app)
      << R"(:::MLLOG {"namespace": "", "time_ms": 1, "event_type": "INTERVAL_START", )"
      << R"("key": "run_start", "value": null, "metadata": {}})"
      << "\n";
  const RealClock clock;
  const MonoTime end = clock.Mono() + absl::Milliseconds(1500);  // is what is to be seen
  while (clock.Mono() < end)
    poll(nullptr, 0, 100);
  ASSERT_EQ(kill(step.pid, SIGCONT), 0);
  ASSERT_THAT(WriteFileAtomic(go, ""), IsOk());
  EXPECT_EQ(Finish(step).code, 0);
  const absl::StatusOr<std::vector<NodeFault>> stalls =
      directory_.ReadFaults(directory_.StallsPath());
  ASSERT_THAT(stalls, IsOk());
  ASSERT_EQ(stalls->size(), 1U);
  EXPECT_EQ((*stalls)[0].rule, "R-PAU-002");
  EXPECT_THAT((*stalls)[0].found, HasSubstr("nothing was watched for 1."));

  const std::vector<rules::Arrival> arrivals =
      rules::ReadArrivals(ReadFile(directory_.ArrivalsPath()).value_or(""));
  ASSERT_EQ(arrivals.size(), 1U);
  EXPECT_GE(arrivals[0].late_ns, 1'300'000'000) << "it may have come at any time of the pause";
  EXPECT_GT(arrivals[0].raw_ns, 0);
}

TEST(HeartbeatTest, AQuietMomentHasNoFault) {
  const Heartbeat heartbeat;
  EXPECT_THAT(heartbeat.faults(), IsEmpty());
}

}  // namespace
}  // namespace assay::agent
