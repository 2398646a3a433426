#include "worker/data/augmentation.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/random.h"
#include "worker/data/cube_symmetry.h"

namespace assay::data {

absl::string_view AugmentationName(Augmentation augmentation) {
  switch (augmentation) {
    case Augmentation::kNone:
      return "none";
    case Augmentation::kFlips:
      return "flips";
    case Augmentation::kFlipsAndPermutations:
      return "flips_and_permutations";
  }
  return "";
}

absl::StatusOr<Augmentation> ParseAugmentation(absl::string_view name) {
  for (const Augmentation augmentation :
       {Augmentation::kNone, Augmentation::kFlips, Augmentation::kFlipsAndPermutations})
    if (name == AugmentationName(augmentation)) return augmentation;
  return absl::InvalidArgumentError(
      absl::StrCat("want none, flips or flips_and_permutations, found \"", name, "\""));
}

int DrawSymmetry(Augmentation augmentation, uint64_t seed, uint32_t epoch, uint32_t sample) {
  if (augmentation == Augmentation::kNone) return 0;
  const int count = augmentation == Augmentation::kFlips ? kCubeFlips : kCubeSymmetries;
  // Rank 0 on every rank: all would draw the same for this sample.
  const Stream stream(seed, Purpose::kAugmentation, 0, epoch);
  return static_cast<int>(stream.Below(sample, static_cast<uint32_t>(count)));
}

}  // namespace assay::data
