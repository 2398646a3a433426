#include "common/random.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::ElementsAre;

// The known-answer vectors published with Random123 for philox4x32-10.
TEST(PhiloxTest, MatchesThePublishedVectors) {
  EXPECT_THAT(Philox({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U));
  EXPECT_THAT(Philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
              ElementsAre(0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU));
  EXPECT_THAT(
      Philox({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
      ElementsAre(0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U));
}

TEST(StreamTest, DependsOnEveryPartOfItsAddress) {
  const uint32_t base = Stream(1, Purpose::kTest).Bits(0);

  EXPECT_EQ(Stream(1, Purpose::kTest).Bits(0), base);
  EXPECT_NE(Stream(2, Purpose::kTest).Bits(0), base);
  EXPECT_NE(Stream(1, Purpose::kInit).Bits(0), base);
  EXPECT_NE(Stream(1, Purpose::kTest, 1).Bits(0), base);
  EXPECT_NE(Stream(1, Purpose::kTest, 0, 1).Bits(0), base);
  EXPECT_NE(Stream(1, Purpose::kTest).Bits(1), base);
}

TEST(StreamTest, NormalHasZeroMeanAndUnitVariance) {
  constexpr int kCount = 100'000;
  const Stream stream(7, Purpose::kTest);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = stream.Normal(static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
  }

  // Five standard errors: 1/sqrt(n) for the mean, sqrt(2/n) for the variance.
  EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 5 * std::sqrt(2.0 / kCount));
}

TEST(ShuffleTest, PermutesAndDiffersByEpoch) {
  std::vector<uint32_t> first(1000);
  std::iota(first.begin(), first.end(), 0U);
  std::vector<uint32_t> second = first;

  Shuffle(Stream(3, Purpose::kShuffle, 0, 1), first);
  Shuffle(Stream(3, Purpose::kShuffle, 0, 2), second);

  EXPECT_EQ(std::set<uint32_t>(first.begin(), first.end()).size(), 1000U);
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace assay
