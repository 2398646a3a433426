#include "worker/data/cube_block.h"

#include <algorithm>
#include <cstring>

#include "common/log.h"

namespace assay::data {

size_t BlockBytes(const CubeBlock& block, int64_t edge) {
  return static_cast<size_t>(block.depth * block.height * edge * kVoxelBytes);
}

void CutBlock(absl::string_view voxels, int64_t edge, const CubeBlock& block,
              std::span<std::byte> target) {
  const int64_t line = edge * kVoxelBytes;
  CHECK(std::ssize(voxels) == edge * edge * line && target.size() == BlockBytes(block, edge))
      << "voxels=" << voxels.size() << " target=" << target.size();
  // Of each plane, the rows inside of the cube are one run.
  const int64_t first = std::clamp<int64_t>(block.height_begin, 0, edge);
  const int64_t last = std::clamp<int64_t>(block.height_begin + block.height, first, edge);
  const auto run = static_cast<size_t>((last - first) * line);
  const auto plane = static_cast<size_t>(block.height * line);
  const auto before = static_cast<size_t>((first - block.height_begin) * line);
  std::byte* out = target.data();
  for (int64_t d = block.depth_begin; d < block.depth_begin + block.depth; ++d, out += plane) {
    const bool is_inside = d >= 0 && d < edge && run > 0;
    if (!is_inside || run < plane) std::memset(out, 0, plane);
    if (is_inside) std::memcpy(out + before, voxels.data() + (d * edge + first) * line, run);
  }
}

}  // namespace assay::data
