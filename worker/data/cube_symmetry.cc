#include "worker/data/cube_symmetry.h"

#include <algorithm>
#include <cstring>

#include "common/log.h"

namespace assay::data {
namespace {

// Voxels of a line of cache: what is read across lines is read in tiles of so many, so that each
// line is fetched once.
constexpr int64_t kTile = 8;

constexpr std::array<std::array<size_t, 3>, 6> kPermutations = {
    {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};

// Where the voxels of the turned cube lie in the given one, in voxels.
struct Walk {
  int64_t begin = 0;                  // of voxel (0, 0, 0)
  std::array<int64_t, 3> steps = {};  // along each axis of the result
  size_t unit = 2;                    // the axis of the result along which neighbours are adjacent
};

Walk WalkOf(const CubeSymmetry& symmetry, int64_t edge) {
  const std::array<int64_t, 3> strides = {edge * edge, edge, 1};
  Walk walk;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t stride = strides[symmetry.axes[axis]];
    if (stride == 1) walk.unit = axis;
    walk.steps[axis] = symmetry.flips[axis] ? -stride : stride;
    if (symmetry.flips[axis]) walk.begin += (edge - 1) * stride;
  }
  return walk;
}

// The part of a block along an axis that is inside of the cube, as numbers within the block.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

Range InsideOf(int64_t block_begin, int64_t block_extent, int64_t edge) {
  const int64_t begin = std::clamp<int64_t>(-block_begin, 0, block_extent);
  return {begin, std::clamp<int64_t>(edge - block_begin, begin, block_extent)};
}

void CopyVoxels(const char* from, int64_t step, int64_t count, std::byte* to) {
  if (step == 1) {
    std::memcpy(to, from, static_cast<size_t>(count * kVoxelBytes));
    return;
  }
  for (int64_t i = 0; i < count; ++i, from += step * kVoxelBytes, to += kVoxelBytes)
    std::memcpy(to, from, kVoxelBytes);
}

}  // namespace

CubeSymmetry CubeSymmetryOf(int number) {
  CHECK(number >= 0 && number < kCubeSymmetries) << "number=" << number;
  CubeSymmetry symmetry = {.axes = kPermutations[static_cast<size_t>(number / kCubeFlips)]};
  for (size_t axis = 0; axis < 3; ++axis)
    symmetry.flips[axis] = ((number % kCubeFlips) >> axis) % 2 != 0;
  return symmetry;
}

void CutTurnedBlock(absl::string_view voxels, int64_t edge, const CubeBlock& block,
                    const CubeSymmetry& symmetry, std::span<std::byte> target) {
  if (symmetry == CubeSymmetry{}) return CutBlock(voxels, edge, block, target);
  CHECK(std::ssize(voxels) == edge * edge * edge * kVoxelBytes &&
        target.size() == BlockBytes(block, edge))
      << "voxels=" << voxels.size() << " target=" << target.size();
  const Walk walk = WalkOf(symmetry, edge);
  const std::array<int64_t, 2> begins = {block.depth_begin, block.height_begin};
  const std::array<Range, 2> inside = {InsideOf(block.depth_begin, block.depth, edge),
                                       InsideOf(block.height_begin, block.height, edge)};
  const bool is_whole = inside[0].begin == 0 && inside[0].end == block.depth &&
                        inside[1].begin == 0 && inside[1].end == block.height;
  if (!is_whole) std::memset(target.data(), 0, target.size());
  // Of D and H, the axis whose neighbours are adjacent in the given cube comes innermost, with a
  // tile of W.
  const size_t inner = walk.unit == 0 ? 0 : 1, outer = 1 - inner;
  const int64_t tile = walk.unit == 2 ? edge : kTile;
  std::array<int64_t, 2> at = {};  // within the block
  for (at[outer] = inside[outer].begin; at[outer] < inside[outer].end; ++at[outer])
    for (int64_t w = 0; w < edge; w += tile)
      for (at[inner] = inside[inner].begin; at[inner] < inside[inner].end; ++at[inner]) {
        const int64_t from = walk.begin + (begins[0] + at[0]) * walk.steps[0] +
                             (begins[1] + at[1]) * walk.steps[1] + w * walk.steps[2];
        const int64_t to = (at[0] * block.height + at[1]) * edge + w;
        CopyVoxels(voxels.data() + from * kVoxelBytes, walk.steps[2], std::min(tile, edge - w),
                   target.data() + to * kVoxelBytes);
      }
}

}  // namespace assay::data
