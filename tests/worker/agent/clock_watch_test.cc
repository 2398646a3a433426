#include "worker/agent/clock_watch.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecondNs = 1'000'000'000;

// A node whose clocks are at the mercy of the test.
class ClockWatchTest : public ::testing::Test {
 protected:
  // Time passes while the kernel's clocks run at `rate`.
  void Pass(double seconds, double rate = 1) {
    now_.raw_ns += static_cast<int64_t>(seconds * 1e9);
    now_.mono_ns += static_cast<int64_t>(seconds * rate * 1e9);
    now_.wall_ns += static_cast<int64_t>(seconds * rate * 1e9);
  }

  ClockReading now_{.wall_ns = 1'704'067'200 * kSecondNs, .mono_ns = 5, .raw_ns = 7};
  ClockWatch watch_{[this] { return now_; }};
};

TEST_F(ClockWatchTest, ATimeServiceThatSlewsIsNoFault) {
  for (const double rate : {1.0, 1.0005, 0.9995}) {
    Pass(60, rate);
    EXPECT_FALSE(watch_.Look(/*is_final=*/false)) << rate;
  }
  EXPECT_THAT(watch_.faults(), IsEmpty());
}

TEST_F(ClockWatchTest, AWallClockThatIsSetIsTold) {
  Pass(60);
  now_.wall_ns += 30 * kSecondNs;
  EXPECT_TRUE(watch_.Look(false));
  Pass(60);
  EXPECT_FALSE(watch_.Look(false)) << "told twice";
  now_.wall_ns -= 2'000'000;
  Pass(60);
  EXPECT_TRUE(watch_.Look(true));

  EXPECT_THAT(watch_.faults(),
              ElementsAre(AllOf(Field(&NodeFault::rule, "R-CLK-001"),
                                Field(&NodeFault::found, HasSubstr("set by +30.000 s between "
                                                                   "00:00:00.000Z"))),
                          Field(&NodeFault::found, HasSubstr("-0.002 s"))));
}

// adjtimex with a tick of 9000 makes a run look a tenth shorter than it is.
TEST_F(ClockWatchTest, AClockThatIsSlowedIsTold) {
  Pass(12, 0.9);
  EXPECT_TRUE(watch_.Look(false));

  EXPECT_THAT(watch_.faults(),
              ElementsAre(AllOf(Field(&NodeFault::rule, "R-CLK-002"),
                                Field(&NodeFault::found, HasSubstr("ran at 0.9000 of")))));
}

TEST_F(ClockWatchTest, TooLittleTimeSaysNothingUntilThereIsMore) {
  Pass(0.5, 0.9);
  EXPECT_FALSE(watch_.Look(true));
  Pass(5, 0.9);
  EXPECT_FALSE(watch_.Look(false));
  EXPECT_TRUE(watch_.Look(true));
}

TEST(ReadClocksTest, ClocksOfThisNodeGoOn) {
  const ClockReading before = ReadClocks();
  const ClockReading after = ReadClocks();
  EXPECT_GE(after.mono_ns, before.mono_ns);
  EXPECT_GT(after.raw_ns, before.raw_ns);
  EXPECT_GT(before.wall_ns, 1'704'067'200 * kSecondNs);
}

}  // namespace
}  // namespace assay::agent
