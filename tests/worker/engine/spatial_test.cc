#include "worker/engine/spatial.h"

#include <gtest/gtest.h>

#include <optional>

namespace assay {
namespace {

TEST(SpatialTest, NumbersMembersWithHFasterAndFindsTheirNeighbours) {
  const SpatialGrid grid = {{2, 3}};
  for (int member = 0; member < 6; ++member)
    EXPECT_EQ(PlaceOf(grid, member).member(), member);

  const SpatialPlace place = PlaceOf(grid, 4);  // second along D, second along H
  EXPECT_EQ(place.at, (std::array<int, 2>{1, 1}));
  EXPECT_EQ(place.Neighbour(0, -1), 1);
  EXPECT_EQ(place.Neighbour(0, 1), std::nullopt);
  EXPECT_EQ(place.Neighbour(1, -1), 3);
  EXPECT_EQ(place.Neighbour(1, 1), 5);
}

// Kernel 2 is one-sided: no plane in front, one behind.
TEST(SpatialTest, BlocksReachAsFarAsTheKernelNeeds) {
  const SpatialPlace first = PlaceOf({{4, 1}}, 0), last = PlaceOf({{4, 1}}, 3);

  EXPECT_EQ(BlockAlong(0, 128, first, HaloOf(3)), (Interval{-1, 34}));
  EXPECT_EQ(BlockAlong(0, 128, last, HaloOf(3)), (Interval{95, 34}));
  EXPECT_EQ(BlockAlong(0, 128, first, HaloOf(2)), (Interval{0, 33}));
  EXPECT_EQ(BlockAlong(0, 128, last, HaloOf(2)), (Interval{96, 33}));
  EXPECT_EQ(BlockAlong(1, 128, last, HaloOf(3)), (Interval{0, 128})) << "an axis left whole";
}

}  // namespace
}  // namespace assay
