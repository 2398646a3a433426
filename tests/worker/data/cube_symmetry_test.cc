#include "worker/data/cube_symmetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace assay::data {
namespace {

using Counts = std::vector<int16_t>;

// Four counts per voxel, each of its own, so that no two voxels are alike.
Counts NumberedCube(int64_t edge) {
  Counts counts(static_cast<size_t>(edge * edge * edge * 4));
  for (size_t i = 0; i < counts.size(); ++i)
    counts[i] = static_cast<int16_t>(i);
  return counts;
}

std::string Bytes(const Counts& counts) {
  return {reinterpret_cast<const char*>(counts.data()), counts.size() * sizeof(int16_t)};
}

Counts Turn(const Counts& cube, int64_t edge, const CubeSymmetry& symmetry) {
  Counts turned(cube.size(), 77);
  CutTurnedBlock(Bytes(cube), edge, WholeCube(edge), symmetry,
                 std::as_writable_bytes(std::span(turned)));
  return turned;
}

int16_t At(const Counts& cube, int64_t edge, int64_t d, int64_t h, int64_t w, int64_t channel) {
  return cube[static_cast<size_t>(((d * edge + h) * edge + w) * 4 + channel)];
}

std::vector<Counts> AllTurned(const Counts& cube, int64_t edge) {
  std::vector<Counts> all;
  for (int number = 0; number < kCubeSymmetries; ++number)
    all.push_back(Turn(cube, edge, CubeSymmetryOf(number)));
  return all;
}

TEST(CubeSymmetryTest, MapsVoxelsAsWrittenByHand) {
  constexpr int64_t kEdge = 5;
  const Counts cube = NumberedCube(kEdge);
  // A quarter turn around W, a mirror of W alone, and the cycle of the axes.
  const Counts quarter = Turn(cube, kEdge, {.axes = {1, 0, 2}, .flips = {true, false, false}});
  const Counts mirror = Turn(cube, kEdge, {.flips = {false, false, true}});
  const Counts cycle = Turn(cube, kEdge, {.axes = {2, 0, 1}});

  for (int64_t d = 0; d < kEdge; ++d)
    for (int64_t h = 0; h < kEdge; ++h)
      for (int64_t w = 0; w < kEdge; ++w)
        for (int64_t c = 0; c < 4; ++c) {
          ASSERT_EQ(At(quarter, kEdge, d, h, w, c), At(cube, kEdge, h, 4 - d, w, c));
          ASSERT_EQ(At(mirror, kEdge, d, h, w, c), At(cube, kEdge, d, h, 4 - w, c));
          ASSERT_EQ(At(cycle, kEdge, d, h, w, c), At(cube, kEdge, h, w, d, c));
        }
}

TEST(CubeSymmetryTest, NumberZeroIsTheIdentityAndTheFirstEightKeepTheAxes) {
  EXPECT_EQ(CubeSymmetryOf(0), CubeSymmetry{});
  std::set<std::array<bool, 3>> flips;
  for (int number = 0; number < kCubeFlips; ++number) {
    EXPECT_EQ(CubeSymmetryOf(number).axes, CubeSymmetry{}.axes);
    flips.insert(CubeSymmetryOf(number).flips);
  }
  EXPECT_EQ(flips.size(), 8U);
}

// 48 different maps, closed under composition, each with an inverse: the cube's full symmetry
// group, of order 48.
TEST(CubeSymmetryTest, TheNumbersFormTheGroupOfTheCube) {
  constexpr int64_t kEdge = 3;
  const Counts cube = NumberedCube(kEdge);
  const std::vector<Counts> all = AllTurned(cube, kEdge);
  const std::set<Counts> distinct(all.begin(), all.end());
  ASSERT_EQ(distinct.size(), 48U);

  for (const Counts& turned : all) {
    const std::vector<Counts> twice = AllTurned(turned, kEdge);
    EXPECT_EQ(std::set<Counts>(twice.begin(), twice.end()), distinct);
    EXPECT_EQ(std::count(twice.begin(), twice.end(), cube), 1);
  }
}

// Every voxel arrives once, with its four channels together and in order; 20 is no multiple of the
// tiles in which the axes are gone through.
TEST(CubeSymmetryTest, VoxelsAreMovedWholeAndNeitherLostNorDoubled) {
  constexpr int64_t kEdge = 20;
  const Counts cube = NumberedCube(kEdge);
  const auto voxels = [](const Counts& counts) {
    std::vector<std::array<int16_t, 4>> list(counts.size() / 4);
    std::memcpy(list.data(), counts.data(), counts.size() * sizeof(int16_t));
    std::sort(list.begin(), list.end());
    return list;
  };
  const auto expected = voxels(cube);

  for (const Counts& turned : AllTurned(cube, kEdge))
    EXPECT_EQ(voxels(turned), expected);
}

// Ranks that share a sample each cut their block out of the same turned cube.
TEST(CubeSymmetryTest, BlocksArePartsOfTheTurnedCube) {
  constexpr int64_t kEdge = 12;
  const Counts cube = NumberedCube(kEdge);
  const CubeBlock blocks[] = {{.depth_begin = -1, .depth = 7, .height_begin = 5, .height = 8},
                              {.depth_begin = 6, .depth = 6, .height_begin = 0, .height = 12},
                              {.depth_begin = 3, .depth = 10, .height_begin = -2, .height = 4}};

  for (int number = 0; number < kCubeSymmetries; ++number) {
    const CubeSymmetry symmetry = CubeSymmetryOf(number);
    const std::string turned = Bytes(Turn(cube, kEdge, symmetry));
    for (const CubeBlock& block : blocks) {
      Counts found(BlockBytes(block, kEdge) / sizeof(int16_t), 77), expected = found;
      CutTurnedBlock(Bytes(cube), kEdge, block, symmetry, std::as_writable_bytes(std::span(found)));
      CutBlock(turned, kEdge, block, std::as_writable_bytes(std::span(expected)));
      ASSERT_EQ(found, expected) << "number=" << number << " depth_begin=" << block.depth_begin;
    }
  }
}

}  // namespace
}  // namespace assay::data
