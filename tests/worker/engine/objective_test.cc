#include "worker/engine/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "tests/worker/engine/host_tensor.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/maps.h"

namespace assay {
namespace {

using Labels = std::vector<uint8_t>;

// Of one sample.
double MeanIntersectionOverUnion(const Labels& prediction, const Labels& truth, int64_t classes) {
  const Shape shape = {1, 1, std::ssize(truth)};
  HostTensor<uint8_t> seen(shape, prediction), real(shape, truth);
  HostTensor<float> counts({2, 1, classes});
  ReferenceBackend<float>().maps()->CountClasses(seen.view(), real.view(), counts.view());
  const std::span<const float> all = counts.values;
  const auto half = static_cast<size_t>(classes);
  return assay::MeanIntersectionOverUnion(all.first(half), all.last(half));
}

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
