#include "worker/agent/clock_offset.h"

#include <optional>

#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "common/random.h"

namespace assay::agent {
namespace {

TEST(ClockOffsetTest, IsExactWhenBothWaysTakeEquallyLong) {
  // The worker is 500 us ahead; each way takes 200 us; the coordinator holds the call for 1 s.
  const std::optional<OffsetEstimate> estimate = EstimateOffset({.send_us = 10'500,
                                                                 .server_receive_us = 10'200,
                                                                 .server_send_us = 1'010'200,
                                                                 .receive_us = 1'010'900});
  ASSERT_TRUE(estimate.has_value());
  EXPECT_EQ(estimate->offset_us, 500);
  EXPECT_EQ(estimate->uncertainty_us, 200 + 50 + 1);  // half the wire, the drift of 1 s, rounding
}

TEST(ClockOffsetTest, TheTruthLiesWithinTheUncertainty) {
  const Stream random(7, Purpose::kTest);
  for (uint64_t i = 0; i < 1000; ++i) {
    const int64_t truth = static_cast<int64_t>(random.Below(5 * i, 2'000'000)) - 1'000'000;
    const int64_t up = random.Below(5 * i + 1, 5000);
    const int64_t down = random.Below(5 * i + 2, 5000);
    const int64_t held = random.Below(5 * i + 3, 20'000'000);
    const int64_t start = 1'000'000'000 + random.Below(5 * i + 4, 1000);
    const std::optional<OffsetEstimate> estimate =
        EstimateOffset({.send_us = start + truth,
                        .server_receive_us = start + up,
                        .server_send_us = start + up + held,
                        .receive_us = start + up + held + down + truth});
    ASSERT_TRUE(estimate.has_value());
    EXPECT_LE(std::abs(estimate->offset_us - truth), estimate->uncertainty_us);
  }
}

TEST(ClockOffsetTest, ContradictoryStampsGiveNoEstimate) {
  EXPECT_EQ(EstimateOffset({0, 100, 50, 200}), std::nullopt);
  EXPECT_EQ(EstimateOffset({0, 100, 400, 200}), std::nullopt);
}

TEST(ClockOffsetTest, KeepsTheBestUntilItsAgeMakesItWorse) {
  ClockOffset offset;
  EXPECT_EQ(offset.Best(MonoTime{}), std::nullopt);
  offset.Add({.offset_us = 10, .uncertainty_us = 100}, MonoTime{});
  offset.Add({.offset_us = 90, .uncertainty_us = 900}, MonoTime{});

  EXPECT_EQ(offset.Best(MonoTime{})->offset_us, 10);
  // After 100 s the first has grown to 5,100 us; a new one with 1,000 us is better.
  const MonoTime later = MonoTime{} + absl::Seconds(100);
  offset.Add({.offset_us = 55, .uncertainty_us = 1000}, later);
  EXPECT_EQ(offset.Best(later)->offset_us, 55);
}

}  // namespace
}  // namespace assay::agent
