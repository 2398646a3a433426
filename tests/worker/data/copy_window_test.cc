#include "worker/data/copy_window.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "tests/support/fake_clock.h"

namespace assay::data {
namespace {

using ::assay::testing::FakeClock;

// The size after 10,000 pieces on storage that finishes `pieces_per_s` of them with `size` at once.
int SizeOn(const std::function<double(int size)>& pieces_per_s, int max = 128) {
  AdaptiveSize size(8, max);
  double now_s = 0;
  for (int i = 0; i < 10'000; ++i) {
    now_s += 1 / pieces_per_s(size.size());
    size.Advance(1 << 20, MonoTime{static_cast<int64_t>(now_s * 1e9)});
  }
  return size.size();
}

TEST(AdaptiveSizeTest, LatencyIsHiddenByMoreAtOnce) {
  EXPECT_EQ(SizeOn([](int size) { return size / 0.005; }), 128);
}

TEST(AdaptiveSizeTest, ADiskThatIsBusyWithEightGetsNoMore) {
  EXPECT_EQ(SizeOn([](int) { return 1000.0; }), 8);
}

// 5 ms for each request, and no more than 5,000 of them in a second, which 25 at once reach.
TEST(AdaptiveSizeTest, StaysAtTheLastOneThatPaid) {
  EXPECT_EQ(SizeOn([](int size) { return std::min(size / 0.005, 5000.0); }), 32);
}

TEST(AdaptiveSizeTest, SlowerWithMoreGoesBack) {
  EXPECT_EQ(SizeOn([](int size) { return size <= 16 ? 100.0 * size : 500.0; }), 16);
}

TEST(AdaptiveSizeTest, NeverPassesItsLargest) {
  EXPECT_EQ(SizeOn([](int size) { return 100.0 * size; }, 50), 32);
  EXPECT_EQ(SizeOn([](int size) { return 100.0 * size; }, 8), 8);
}

// The first measurement of 16 is spoilt: for as long as it lasts, they are as slow as 8.
TEST(AdaptiveSizeTest, OneBadMeasurementDoesNotEndIt) {
  int seen = 0;
  EXPECT_EQ(SizeOn([&seen](int size) {
              if (size == 16) ++seen;
              return size == 16 && seen <= 48 ? 1600.0 : 200.0 * size;
            }),
            128);
}

TEST(CopyWindowTest, GivesPlacesUpToItsSizeAndTheWarmOneFirst) {
  const FakeClock clock;
  CopyWindow window(2, 4, &clock);
  const int first = window.Enter().value();
  const int second = window.Enter().value();
  EXPECT_NE(first, second);

  window.Leave(second);
  EXPECT_EQ(window.Enter(), second);
  window.Leave(first);
  EXPECT_EQ(window.Enter(), first);
}

TEST(CopyWindowTest, NobodyEntersAClosedOne) {
  const FakeClock clock;
  CopyWindow window(1, 1, &clock);
  window.Enter();

  window.Close();

  EXPECT_EQ(window.Enter(), std::nullopt);
}

}  // namespace
}  // namespace assay::data
