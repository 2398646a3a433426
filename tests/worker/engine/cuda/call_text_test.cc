#include "worker/engine/backends/cuda/call_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/worker/engine/cuda/host_device.h"
#include "worker/engine/backends/cuda/libraries.h"
#include "worker/engine/backends/cuda/plan.h"

namespace assay::cuda {
namespace {

using ::testing::ElementsAre;

TEST(CallTextTest, AConvolutionIsNamedWithShapesTypeAndEngine) {
  HostDevice device;
  std::vector<std::unique_ptr<ConvolutionPlan>> plans;
  const ConvolutionProblem problem = ProblemOf(LayoutOf(Conv2dShape{2, 8, 6, 4, 16, 3, 2}),
                                               Direction::kBackwardWeights, Precision::kBfloat16);
  ASSERT_TRUE(device.PlanConvolutions(problem, {}, &plans).ok());
  const Call call =
      ConvolutionCall{.plan = plans[0].get(), .x = nullptr, .w = nullptr, .y = nullptr};

  EXPECT_EQ(TextOf(call),
            "convolution weights bf16 x=2,4,1,8,6 w=16,4,1,3,3 stride=2 dilation=1 engine=loop");
  EXPECT_EQ(WorkOf(call).flops, 2.0 * (2 * 16 * 4 * 3) * (4 * 9));
  EXPECT_EQ(WorkOf(call).bytes, 2.0 * (2 * 4 * 8 * 6 + 16 * 4 * 9 + 2 * 16 * 4 * 3));
}

TEST(CallTextTest, AProductCountsEachNumberOnceInItsType) {
  MatmulCall product = {.transpose_a = true, .transpose_b = false, .m = 10, .n = 20, .k = 30};
  product.numbers = ProductNumbers::kBfloat16Factors;

  EXPECT_EQ(TextOf(Call(product)), "product bf16_factors m=10 n=20 k=30 ta=1 tb=0");
  EXPECT_EQ(WorkOf(Call(product)).flops, 12'000);
  EXPECT_EQ(WorkOf(Call(product)).bytes, 2 * (300 + 600) + 4 * 200);
}

TEST(CallTextTest, AKernelIsNamedByItsOperationAndTypes) {
  const Call call = Kernel(ActivationForward<Bfloat16>{.count = 5});

  EXPECT_EQ(TextOf(call), "kernel ActivationForward<Bfloat16> count=5");
  EXPECT_EQ(WorkOf(call).bytes, 0);
}

TEST(LateLibrariesTest, OnlyThoseThatCannotBeLoadedAreMissed) {
  const LateLibrary libraries[] = {{"libc.so.6", "nothing works", "install glibc"},
                                   {"libassay_no_such.so.1", "it is slow", "install it"}};

  EXPECT_THAT(MissingLibraries(libraries),
              ElementsAre("libassay_no_such.so.1 is missing: it is slow; install it"));
}

}  // namespace
}  // namespace assay::cuda
