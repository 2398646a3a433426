// Cutting a rank's block out of a whole sample, where several ranks share each sample.

#ifndef WORKER_DATA_CUBE_BLOCK_H_
#define WORKER_DATA_CUBE_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"

#include "common/dataset/example.h"

namespace assay::data {

// The counts of all channels of one place in a cube.
inline constexpr int64_t kVoxelBytes = int64_t{dataset::kCosmoChannels} * int64_t{sizeof(int16_t)};

// Part of a cube along its first two axes; the third and the channels are whole. It may reach
// beyond the cube on any side.
struct CubeBlock {
  int64_t depth_begin = 0;
  int64_t depth = 0;
  int64_t height_begin = 0;
  int64_t height = 0;
};

// All of a cube.
constexpr CubeBlock WholeCube(int64_t edge) {
  return {.depth = edge, .height = edge};
}

// Bytes of a block of int16 counts.
size_t BlockBytes(const CubeBlock& block, int64_t edge);

// Copies the block's counts, in the order of the cube, to `target`: BlockBytes() bytes. What lies
// outside of the cube is zero.
//   voxels: of the whole cube, CosmoValues(edge) int16.
void CutBlock(absl::string_view voxels, int64_t edge, const CubeBlock& block,
              std::span<std::byte> target);

}  // namespace assay::data

#endif  // WORKER_DATA_CUBE_BLOCK_H_
