#include "worker/engine/backends/cuda/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "worker/engine/backends/cuda/geometry.h"

namespace assay::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;

TEST(LaunchTest, StartsEnoughThreadsForSmallWorkAndFillsTheDeviceForLarge) {
  const Launch one = LaunchFor(1, 132), some = LaunchFor(1000, 132);
  const Launch many = LaunchFor(int64_t{1} << 40, 132);

  EXPECT_EQ(one.blocks, 1U);
  EXPECT_THAT(some.blocks * some.threads, Ge(1000U));
  EXPECT_EQ(many.blocks * many.threads, 132U * 2048U);
}

// No thread sums more than this many numbers, so that none takes long; and the partial sums fit.
TEST(FoldTest, StagesShrinkToOneAndFitTheBuffer) {
  const std::pair<int64_t, int64_t> cases[] = {
      {1, 1},           {4, 128}, {64, 512}, {8'388'608, 32},     {262'144 * 16, 32}, {100, 65'536},
      {100'000'000, 1}, {33, 1},  {1025, 7}, {8 * 384 * 576, 64}, {3456, 728}};
  for (const auto& [rows, columns] : cases) {
    SCOPED_TRACE(rows);
    const std::vector<int64_t> stages = FoldStages(rows, columns);

    EXPECT_EQ(stages.back(), 1);
    EXPECT_TRUE(std::is_sorted(stages.rbegin(), stages.rend()));
    EXPECT_THAT(FoldSums(rows, columns), Le(kMaxFoldSums));
    EXPECT_THAT(stages.size(), Le(columns < 32 ? 3U : 2U));
    EXPECT_THAT(FoldSums(rows, columns, kFoldWidth), Le(kMaxFoldSums));
    EXPECT_THAT(FoldStages(rows, columns, kFoldWidth).size(), Le(2U));
  }
}

// Full maps keep every thread busy with several rows, small ones give each thread one.
TEST(RowStrideTest, ThreadsTakeSeveralRowsOnlyWhereThereAreMany) {
  EXPECT_EQ(RowStride(100, 8), 100);
  const int64_t stride = RowStride(8 * 384 * 576, 8);
  EXPECT_THAT(stride, Ge(8 * 384 * 576 / 16));
  EXPECT_THAT(stride * 8, Ge(1 << 18));
  EXPECT_EQ(RowStride(1, 1), 1);
}

TEST(SegmentLengthTest, SegmentsAreLongerWhereThereAreMany) {
  EXPECT_EQ(SegmentLength(48, 72, 91), 8);
  EXPECT_EQ(SegmentLength(int64_t{64} * 384, 576, 16), 32);
  EXPECT_THAT(SegmentLength(384, 576, 16), ::testing::AllOf(Ge(8), Le(16)));
}

TEST(SumStripTest, StripsAreNeitherShortNorLong) {
  EXPECT_EQ(SumStrip(100, 8), 16);
  EXPECT_EQ(SumStrip(int64_t{64} * 384 * 576, 64), 256);
}

TEST(ConvolutionLayoutTest, TensorsAreChannelsLastInTheLibrarysOrderOfAxes) {
  const ConvolutionLayout layout = LayoutOf(SameConv(2, {4, 6, 8}, 3, 5, 3));
  const ConvolutionProblem problem = ProblemOf(layout, Direction::kBackwardData, Precision::kTf32);

  EXPECT_EQ(problem.direction, Direction::kBackwardData);
  EXPECT_EQ(problem.precision, Precision::kTf32);
  EXPECT_THAT(problem.x, ElementsAre(2, 3, 4, 6, 8));
  EXPECT_THAT(problem.x_strides, ElementsAre(576, 1, 144, 24, 3));
  EXPECT_THAT(problem.w, ElementsAre(5, 3, 3, 3, 3));
  EXPECT_THAT(problem.w_strides, ElementsAre(81, 1, 27, 9, 3));
  EXPECT_THAT(problem.y, ElementsAre(2, 5, 4, 6, 8));
  EXPECT_THAT(problem.y_strides, ElementsAre(960, 1, 240, 40, 5));
  EXPECT_THAT(problem.before, ElementsAre(1, 1, 1));
  EXPECT_THAT(problem.after, ElementsAre(1, 1, 1));
}

TEST(ConvolutionLayoutTest, PaddingMayBeUnequal) {
  const ConvolutionLayout layout = LayoutOf(SameConv(2, {4, 6, 8}, 3, 5, 2));
  const ConvolutionProblem problem = ProblemOf(layout, Direction::kForward, Precision::kFloat32);

  EXPECT_THAT(problem.x, ElementsAre(2, 3, 4, 6, 8));
  EXPECT_THAT(problem.y, ElementsAre(2, 5, 4, 6, 8));
  EXPECT_THAT(problem.before, ElementsAre(0, 0, 0));
  EXPECT_THAT(problem.after, ElementsAre(1, 1, 1));
}

TEST(ConvolutionLayoutTest, WeightsHaveEmptyChannelsToo) {
  const ConvolutionLayout layout = LayoutOf(SameConv(2, {4, 6, 8}, 3, 5, 3), 5);
  const ConvolutionProblem problem = ProblemOf(layout, Direction::kForward, Precision::kBfloat16);

  EXPECT_EQ(layout.empty_channels(), 5);
  EXPECT_THAT(problem.x, ElementsAre(2, 8, 4, 6, 8));
  EXPECT_THAT(problem.w, ElementsAre(5, 8, 3, 3, 3));
  EXPECT_THAT(problem.w_strides, ElementsAre(216, 1, 72, 24, 8));
  EXPECT_EQ(layout.packed_weights(), 5 * 8 * 27);
  EXPECT_EQ(layout.direct.weights, 5 * 3 * 27);
}

TEST(ConvolutionLayoutTest, MapsHaveNoDepthAndKeepStrideAndDilation) {
  const ConvolutionLayout layout = LayoutOf(Conv2dShape{.batch = 2,
                                                        .height = 8,
                                                        .width = 10,
                                                        .in_channels = 3,
                                                        .out_channels = 5,
                                                        .kernel = 3,
                                                        .stride = 2,
                                                        .dilation = 2});
  const ConvolutionProblem problem = ProblemOf(layout, Direction::kForward, Precision::kFloat32);

  EXPECT_EQ(problem.dimensions, 2);
  EXPECT_THAT(problem.x, ElementsAre(2, 3, 1, 8, 10));
  EXPECT_THAT(problem.x_strides, ElementsAre(240, 1, 240, 30, 3));
  EXPECT_THAT(problem.w, ElementsAre(5, 3, 1, 3, 3));
  EXPECT_THAT(problem.w_strides, ElementsAre(27, 1, 27, 9, 3));
  EXPECT_THAT(problem.y, ElementsAre(2, 5, 1, 4, 5));
  EXPECT_THAT(problem.before, ElementsAre(0, 2, 2));
  EXPECT_THAT(problem.after, ElementsAre(0, 2, 2));
  EXPECT_THAT(problem.stride, ElementsAre(1, 2, 2));
  EXPECT_THAT(problem.dilation, ElementsAre(1, 2, 2));
}

TEST(ConvolutionLayoutTest, AnEpilogueBelongsToTheForwardPass) {
  const ConvolutionLayout layout = LayoutOf(Conv2dShape{1, 8, 10, 16, 32, 3});

  const ConvolutionProblem problem =
      ProblemOf(layout, Epilogue::kAffineRelu, Precision::kTf32, 1234);

  EXPECT_EQ(problem.direction, Direction::kForward);
  EXPECT_EQ(problem.epilogue, Epilogue::kAffineRelu);
  EXPECT_EQ(problem.max_workspace, 1234U);
  EXPECT_EQ(ProblemOf(layout, Direction::kForward, Precision::kTf32).epilogue, Epilogue::kNone);
}

// Each element of each tensor in one chunk, and each tensor's chunks side by side.
TEST(ChunksTest, CoverEachTensorOnce) {
  const std::vector<int64_t> sizes = {1, kChunkElements, 3 * kChunkElements + 5, 2};

  const Chunks cut = ChunksOf(sizes);

  EXPECT_THAT(cut.first_chunks, ElementsAre(0, 1, 2, 6, 7));
  int64_t first = 0;
  for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
    int64_t elements = 0;
    for (int64_t i = cut.first_chunks[tensor]; i < cut.first_chunks[tensor + 1]; ++i) {
      const Chunk& chunk = cut.chunks[static_cast<size_t>(i)];
      EXPECT_EQ(chunk.first, first + elements);
      EXPECT_EQ(chunk.tensor, static_cast<int32_t>(tensor));
      EXPECT_THAT(chunk.size, Le(kChunkElements));
      elements += chunk.size;
    }
    EXPECT_EQ(elements, sizes[tensor]);
    first += elements;
  }
}

TEST(ScratchPlanTest, PartsAreAlignedAndDoNotOverlap) {
  ScratchPlan plan;

  EXPECT_EQ(plan.Add(1), 0U);
  EXPECT_EQ(plan.Add(257), 256U);
  EXPECT_EQ(plan.Add(0), 768U);
  EXPECT_EQ(plan.bytes(), 768U);
}

}  // namespace
}  // namespace assay::cuda
