#include "worker/engine/backends/cuda/device/cudnn_descriptor.h"

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

// cuDNN checks descriptors without a GPU: extents, strides, padding and types that do not fit
// together are refused here.
void ExpectAccepted(const ConvolutionProblem& problem) {
  Descriptor graph;
  const Fault fault = MakeConvolutionGraph(problem, nullptr, &graph);
  EXPECT_TRUE(fault.ok()) << "x " << problem.x[1] << "*" << problem.x[3] << "*" << problem.x[4]
                          << " w " << problem.w[0] << " of " << problem.w[4] << " direction "
                          << static_cast<int>(problem.direction) << " epilogue "
                          << static_cast<int>(problem.epilogue) << ": " << fault.text;
}

void ExpectAccepted(const ConvolutionLayout& layout, Precision precision) {
  for (const Direction direction :
       {Direction::kForward, Direction::kBackwardData, Direction::kBackwardWeights})
    ExpectAccepted(ProblemOf(layout, direction, precision));
}

TEST(ConvolutionGraphTest, CudnnAcceptsEveryLayerOfCosmoflow) {
  for (const Precision precision : {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16})
    for (const int64_t kernel : {2, 3})
      for (int64_t block = 0; block < 5; ++block) {
        const int64_t edge = 128 >> block, in = block == 0 ? 4 : 16 << block;
        ExpectAccepted(LayoutOf(SameConv(4, {edge, edge, edge}, in, 32 << block, kernel)),
                       precision);
      }
}

TEST(ConvolutionGraphTest, CudnnAcceptsABlockInOneCall) {
  ConvolutionProblem problem = ProblemOf(LayoutOf(SameConv(4, {64, 64, 64}, 32, 64, 3)),
                                         Epilogue::kLeakyPool, Precision::kBfloat16, 0);
  problem.slope = 0.3F;

  ExpectAccepted(problem);
}

// Those that are neither depthwise nor matrix products.
TEST(ConvolutionGraphTest, CudnnAcceptsEveryDenseLayerOfDeepcam) {
  const Conv2dShape shapes[] = {{2, 768, 1152, 16, 32, 3, 2},     {2, 384, 576, 32, 64, 3},
                                {2, 384, 576, 64, 128, 1, 2},     {2, 192, 288, 128, 256, 1, 2},
                                {2, 96, 144, 256, 728, 1, 2},     {2, 48, 72, 2048, 256, 3, 1, 6},
                                {2, 48, 72, 2048, 256, 3, 1, 12}, {2, 48, 72, 2048, 256, 3, 1, 18},
                                {2, 96, 144, 256, 256, 3, 2},     {2, 192, 288, 256, 256, 3, 2},
                                {2, 192, 288, 304, 256, 3},       {2, 384, 576, 256, 256, 3, 2},
                                {2, 768, 1152, 3, 256, 3, 2}};
  for (const Precision precision : {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16})
    for (const Conv2dShape& shape : shapes) {
      ExpectAccepted(LayoutOf(shape), precision);
      for (const Epilogue epilogue : {Epilogue::kAffine, Epilogue::kAffineRelu})
        ExpectAccepted(ProblemOf(LayoutOf(shape), epilogue, precision, 0));
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

constexpr Precision kPrecisions[] = {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16};

TEST(FaithfulEngineTest, PlainEnginesAndWinogradAreTakenInEveryPrecision) {
  for (const Precision precision : kPrecisions) {
    EXPECT_TRUE(IsFaithful({}, precision));
    EXPECT_TRUE(IsFaithful({CUDNN_NUMERICAL_NOTE_WINOGRAD}, precision));
  }
}

TEST(FaithfulEngineTest, TensorCoresMayRoundFactorsButNotInFloat32) {
  EXPECT_FALSE(IsFaithful({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, Precision::kFloat32));
  EXPECT_TRUE(IsFaithful({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, Precision::kTf32));
  EXPECT_TRUE(IsFaithful({CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, Precision::kBfloat16));
}

TEST(FaithfulEngineTest, InputsAreConvertedDownOnlyWhereTheyAreBfloat16Anyway) {
  EXPECT_FALSE(IsFaithful({CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, Precision::kFloat32));
  EXPECT_FALSE(
      IsFaithful({CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
                 Precision::kTf32));
  EXPECT_TRUE(IsFaithful({CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, Precision::kBfloat16));
}

// The second: what cuDNN proposes for the gradient of CosmoFlow's first weights in large batches.
TEST(FaithfulEngineTest, SumsAreNeverRoundedNorRandom) {
  for (const Precision precision : kPrecisions) {
    EXPECT_FALSE(IsFaithful({CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, precision));
    EXPECT_FALSE(IsFaithful(
        {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION},
        precision));
  }
}

// Printed, because plans without a GPU are made for a device of which cuDNN is told these.
TEST(DevicePropertiesTest, PropertiesOfThisGpuAreToBeHad) {
  cudnnHandle_t handle = nullptr;
  if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) GTEST_SKIP() << "no GPU";
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  const Fault fault = properties.Set(CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle)
                          .Finalize("device properties");
  ASSERT_TRUE(fault.ok()) << fault.text;
  int64_t count = 0;
  std::string json(1 << 16, '\0');
  const cudnnStatus_t status =
      cudnnBackendGetAttribute(properties.get(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                               CUDNN_TYPE_CHAR, std::ssize(json), &count, json.data());
  cudnnDestroy(handle);

  ASSERT_EQ(status, CUDNN_STATUS_SUCCESS);
  json.resize(static_cast<size_t>(count));
  EXPECT_NE(json.find("multiProcessorCount"), std::string::npos);
  std::cout << "device_properties=" << json.c_str() << "\n";
}

}  // namespace
}  // namespace assay::cuda
