#include "worker/engine/backends/cuda/device/cudnn_descriptor.h"

#include <gtest/gtest.h>

#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

// cuDNN checks descriptors without a GPU: extents, strides, padding and types that do not fit
// together are refused here.
TEST(ConvolutionGraphTest, CudnnAcceptsEveryLayerOfCosmoflow) {
  for (const Precision precision : {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16})
    for (const int64_t kernel : {2, 3})
      for (int64_t block = 0; block < 5; ++block)
        for (const Direction direction :
             {Direction::kForward, Direction::kBackwardData, Direction::kBackwardWeights}) {
          const int64_t edge = 128 >> block, in = block == 0 ? 4 : 16 << block;
          const ConvolutionLayout layout =
              LayoutOf(SameConv(4, {edge, edge, edge}, in, 32 << block, kernel));
          Descriptor graph;

          const Fault fault =
              MakeConvolutionGraph(ProblemOf(layout, direction, precision), nullptr, &graph);

          EXPECT_TRUE(fault.ok()) << "block " << block << " kernel " << kernel << " direction "
                                  << static_cast<int>(direction) << ": " << fault.text;
        }
}

TEST(ConvolutionGraphTest, CudnnRefusesExtentsThatDoNotFit) {
  ConvolutionProblem problem = ProblemOf(LayoutOf(SameConv(1, {8, 8, 8}, 4, 8, 3)),
                                         Direction::kForward, Precision::kFloat32);
  problem.y[2] += 5;
  Descriptor graph;

  const Fault fault = MakeConvolutionGraph(problem, nullptr, &graph);

  EXPECT_FALSE(fault.ok());
  EXPECT_NE(fault.text.find("cuDNN"), std::string::npos) << fault.text;
}

TEST(FaithfulEngineTest, OnlyReducedPrecisionMayRoundFactorsAndNoneMayBeRandom) {
  EXPECT_TRUE(IsFaithful({}, Precision::kFloat32));
  EXPECT_TRUE(IsFaithful({CUDNN_NUMERICAL_NOTE_WINOGRAD}, Precision::kFloat32));
  EXPECT_FALSE(IsFaithful({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, Precision::kFloat32));
  EXPECT_FALSE(IsFaithful({CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, Precision::kFloat32));
  EXPECT_TRUE(IsFaithful({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, Precision::kTf32));
  EXPECT_TRUE(IsFaithful({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, Precision::kBfloat16));
  EXPECT_FALSE(IsFaithful({CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, Precision::kBfloat16));
}

}  // namespace
}  // namespace assay::cuda
