#include "worker/agent/back_off.h"

#include "gtest/gtest.h"

namespace assay::agent {
namespace {

TEST(BackOffTest, DoublesUpToItsLimit) {
  const double kFull = 1.0;
  EXPECT_EQ(BackOff(1, kFull), kBackOffFirst);
  EXPECT_EQ(BackOff(2, kFull), 2 * kBackOffFirst);
  EXPECT_EQ(BackOff(4, kFull), 8 * kBackOffFirst);
  EXPECT_EQ(BackOff(1'000'000, kFull), kBackOffMax);
}

TEST(BackOffTest, IsSpreadOverTheUpperHalf) {
  for (int failures = 1; failures < 20; ++failures) {
    EXPECT_EQ(BackOff(failures, 0), BackOff(failures, 1) / 2);
    EXPECT_GT(BackOff(failures, 0.5), BackOff(failures, 0));
  }
}

}  // namespace
}  // namespace assay::agent
