// Data augmentation for cubes: in each epoch every training sample is flipped, and perhaps its axes
// are permuted, at random. No part of the reference; the open entries of ABCI and Fugaku in MLPerf
// HPC v0.7 had it.

#ifndef WORKER_DATA_AUGMENTATION_H_
#define WORKER_DATA_AUGMENTATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay::data {

enum class Augmentation {
  kNone,
  kFlips,                 // each axis flipped or not: 8 cubes of one sample
  kFlipsAndPermutations,  // the axes permuted too: all 48
};

// "none", "flips", "flips_and_permutations".
absl::string_view AugmentationName(Augmentation augmentation);
// INVALID_ARGUMENT for any other text, listing the names.
absl::StatusOr<Augmentation> ParseAugmentation(absl::string_view name);

// The number of the symmetry (cube_symmetry.h) that `sample`, by its number in the whole split's
// sorted list, has in 0-based `epoch`. A function of its arguments and nothing else: the same
// whichever rank reads the sample, and after resuming.
int DrawSymmetry(Augmentation augmentation, uint64_t seed, uint32_t epoch, uint32_t sample);

}  // namespace assay::data

#endif  // WORKER_DATA_AUGMENTATION_H_
