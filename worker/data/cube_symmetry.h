// Turning and mirroring cubes: the 48 ways in which a cube can be laid on itself.
//
// Matter has no preferred direction, so a turned or mirrored cube is as good a sample of the same
// cosmology as the one that was simulated. Used for data augmentation (augmentation.h).

#ifndef WORKER_DATA_CUBE_SYMMETRY_H_
#define WORKER_DATA_CUBE_SYMMETRY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"

#include "worker/data/cube_block.h"

namespace assay::data {

// Axes are (D, H, W). Voxel p of the result is voxel q of the given cube, where for each axis i of
// the result q[axes[i]] is p[i], or edge - 1 - p[i] if flips[i].
struct CubeSymmetry {
  std::array<size_t, 3> axes = {0, 1, 2};  // a permutation
  std::array<bool, 3> flips = {};

  friend bool operator==(const CubeSymmetry&, const CubeSymmetry&) = default;
};

inline constexpr int kCubeSymmetries = 48;
inline constexpr int kCubeFlips = 8;

// Number 0 is the identity; below kCubeFlips are those that keep every axis where it is. Never
// renumber: runs are reproduced by seed. `number`: below kCubeSymmetries.
CubeSymmetry CubeSymmetryOf(int number);

// As CutBlock, from the turned cube instead of the given one.
void CutTurnedBlock(absl::string_view voxels, int64_t edge, const CubeBlock& block,
                    const CubeSymmetry& symmetry, std::span<std::byte> target);

}  // namespace assay::data

#endif  // WORKER_DATA_CUBE_SYMMETRY_H_
