#include "worker/engine/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay {
namespace {

using Labels = std::vector<uint8_t>;

TEST(IntersectionOverUnionTest, AllBackgroundOnAllBackgroundIsOne) {
  const Labels background(12, 0);

  EXPECT_EQ(MeanIntersectionOverUnion(background, background, 3), 1);
}

TEST(IntersectionOverUnionTest, CountsEachClassAlike) {
  const Labels truth = {0, 0, 0, 0, 0, 0, 1, 1, 2, 2};
  const Labels prediction = {0, 0, 0, 0, 0, 1, 1, 1, 0, 2};
  // Background: 5 of 7; cyclones: 2 of 3; rivers: 1 of 2.

  EXPECT_NEAR(MeanIntersectionOverUnion(prediction, truth, 3), (5.0 / 7 + 2.0 / 3 + 1.0 / 2) / 3,
              1e-15);
}

// A class that is in neither counts 1, one that is only predicted counts 0: so a sample's score is
// not the pooled one.
TEST(IntersectionOverUnionTest, IsTakenPerSampleNotPooled) {
  const Labels no_storm = {0, 0, 0, 0}, storm = {1, 1, 0, 0};
  const Labels saw_storm = {1, 0, 0, 0}, saw_half = {1, 0, 0, 0};

  EXPECT_NEAR(MeanIntersectionOverUnion(saw_storm, no_storm, 3), (0.75 + 0 + 1) / 3, 1e-15);
  EXPECT_NEAR(MeanIntersectionOverUnion(saw_half, storm, 3), (2.0 / 3 + 0.5 + 1) / 3, 1e-15);
}

}  // namespace
}  // namespace assay
