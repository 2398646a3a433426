#include "worker/data/cache_plan.h"

#include "gtest/gtest.h"

namespace assay::data {
namespace {

TEST(CachePlanTest, TheFirstSamplesStayAsManyAsFit) {
  CachePlan plan(/*first_slot=*/5, /*slots=*/2);

  EXPECT_EQ(plan.Next(70), (CachePlace{.slot = 5}));
  EXPECT_EQ(plan.Next(30), (CachePlace{.slot = 6}));
  EXPECT_EQ(plan.Next(30), (CachePlace{.slot = 6, .is_there = true}));
  EXPECT_EQ(plan.Next(10), CachePlace());
  EXPECT_EQ(plan.Next(10), CachePlace());
  EXPECT_EQ(plan.Next(70), (CachePlace{.slot = 5, .is_there = true}));
}

TEST(CachePlanTest, WithoutRoomNothingStays) {
  CachePlan plan(0, 0);

  EXPECT_EQ(plan.Next(1), CachePlace());
  EXPECT_EQ(plan.Next(1), CachePlace());
}

}  // namespace
}  // namespace assay::data
