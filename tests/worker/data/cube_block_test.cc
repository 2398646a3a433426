#include "worker/data/cube_block.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace assay::data {
namespace {

constexpr int64_t kBlockEdge = 4;

// Each count tells where it is: 1000 d + 100 h + 10 w + channel, so none is 0 but the first.
std::string NumberedCube() {
  std::vector<int16_t> counts;
  for (int d = 0; d < kBlockEdge; ++d)
    for (int h = 0; h < kBlockEdge; ++h)
      for (int w = 0; w < kBlockEdge; ++w)
        for (int c = 0; c < 4; ++c)
          counts.push_back(static_cast<int16_t>(1000 * d + 100 * h + 10 * w + c));
  return {reinterpret_cast<const char*>(counts.data()), counts.size() * sizeof(int16_t)};
}

// The block's counts, element by element; beyond the cube 0.
std::vector<int16_t> Expected(const CubeBlock& block) {
  std::vector<int16_t> counts;
  for (int64_t d = block.depth_begin; d < block.depth_begin + block.depth; ++d)
    for (int64_t h = block.height_begin; h < block.height_begin + block.height; ++h)
      for (int64_t w = 0; w < kBlockEdge; ++w)
        for (int64_t c = 0; c < 4; ++c) {
          const bool is_inside = d >= 0 && d < kBlockEdge && h >= 0 && h < kBlockEdge;
          counts.push_back(is_inside ? static_cast<int16_t>(1000 * d + 100 * h + 10 * w + c)
                                     : int16_t{0});
        }
  return counts;
}

TEST(CubeBlockTest, CutsPartsWithZerosBeyondTheCube) {
  const CubeBlock blocks[] = {WholeCube(kBlockEdge),
                              {.depth_begin = -1, .depth = 4, .height_begin = 0, .height = 4},
                              {.depth_begin = 1, .depth = 4, .height_begin = 0, .height = 4},
                              {.depth_begin = 0, .depth = 4, .height_begin = -1, .height = 4},
                              {.depth_begin = 1, .depth = 2, .height_begin = 1, .height = 4},
                              {.depth_begin = -1, .depth = 3, .height_begin = 2, .height = 3}};

  for (const CubeBlock& block : blocks) {
    SCOPED_TRACE(::testing::Message() << block.depth_begin << ' ' << block.height_begin);
    std::vector<int16_t> found(BlockBytes(block, kBlockEdge) / sizeof(int16_t), 77);
    CutBlock(NumberedCube(), kBlockEdge, block, std::as_writable_bytes(std::span(found)));
    EXPECT_EQ(found, Expected(block));
  }
}

}  // namespace
}  // namespace assay::data
