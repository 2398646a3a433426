#include "worker/data/augmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/support/status_matchers.h"
#include "worker/data/cube_symmetry.h"

namespace assay::data {
namespace {

using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::testing::HasSubstr;

std::vector<int> Draws(Augmentation augmentation, uint64_t seed, uint32_t epoch, uint32_t count) {
  std::vector<int> draws;
  for (uint32_t sample = 0; sample < count; ++sample)
    draws.push_back(DrawSymmetry(augmentation, seed, epoch, sample));
  return draws;
}

TEST(AugmentationTest, IsOffUnlessAskedFor) {
  EXPECT_THAT(Draws(Augmentation::kNone, 7, 3, 100), ::testing::Each(0));
}

// Chi squared over the 48 (or 8) numbers of 48,000 draws; 99.99 % of fair draws stay below.
TEST(AugmentationTest, EverySymmetryIsAsLikely) {
  const struct {
    Augmentation augmentation;
    int symmetries;
    double limit;
  } rows[] = {{Augmentation::kFlips, kCubeFlips, 29.9},
              {Augmentation::kFlipsAndPermutations, kCubeSymmetries, 93.2}};
  for (const auto& row : rows) {
    std::map<int, double> counts;
    for (uint32_t epoch = 0; epoch < 48; ++epoch)
      for (const int draw : Draws(row.augmentation, 7, epoch, 1000))
        ++counts[draw];
    EXPECT_EQ(static_cast<int>(counts.size()), row.symmetries);
    EXPECT_EQ(counts.begin()->first, 0);
    const double expected = 48'000.0 / row.symmetries;
    double chi_squared = 0;
    for (const auto& [symmetry, count] : counts)
      chi_squared += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_squared, row.limit) << AugmentationName(row.augmentation);
  }
}

TEST(AugmentationTest, SeedAndEpochTurnSamplesAnew) {
  constexpr Augmentation kAll = Augmentation::kFlipsAndPermutations;
  const std::vector<int> draws = Draws(kAll, 7, 3, 200);

  EXPECT_EQ(Draws(kAll, 7, 3, 200), draws);
  EXPECT_NE(Draws(kAll, 7, 4, 200), draws);
  EXPECT_NE(Draws(kAll, 8, 3, 200), draws);
}

// Runs are reproduced by seed, so these numbers must stay what they are. They were computed by a
// program of its own from the definition of the stream (Philox4x32-10).
TEST(AugmentationTest, DrawsWhatItAlwaysDrew) {
  EXPECT_EQ(Draws(Augmentation::kFlipsAndPermutations, 42, 0, 8),
            (std::vector<int>{19, 31, 34, 4, 30, 16, 19, 16}));
}

TEST(AugmentationTest, IsNamed) {
  EXPECT_THAT(ParseAugmentation("flips"), IsOkAndHolds(Augmentation::kFlips));
  EXPECT_THAT(ParseAugmentation("flips_and_permutations"),
              IsOkAndHolds(Augmentation::kFlipsAndPermutations));
  EXPECT_THAT(ParseAugmentation("mirror"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want none, flips or")));
}

}  // namespace
}  // namespace assay::data
