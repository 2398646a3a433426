// What names the layer in which a run goes wrong.

#include "worker/engine/number_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <span>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "tests/worker/models/model_batch.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"

namespace assay::number_check {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::IsOk;

ModelSpec SmallCosmoflow() {
  return {.name = "cosmoflow",
          .cosmoflow = {.batch = 1, .cube_edge = 32, .base_filters = 1},
          .options = {.seed = 42}};
}

ModelSpec SmallDeepcam() {
  return {.name = "deepcam",
          .deepcam = {.batch = 2, .height = 32, .width = 48, .base_filters = 4, .middle_blocks = 1},
          .options = {.seed = 5, .optimizer = {.kind = OptimizerOptions::Kind::kAdam}}};
}

// Puts a number that is not finite into the first of `name`, trains a step, and says how that ends.
std::string StepWithPoisoned(const std::string& name, ModelSpec spec, cuda::Precision precision) {
  auto backend = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(),
                                         {.name = "cuda", .precision = precision});
  EXPECT_THAT(backend, IsOk());
  auto model = MakeTrainable(spec, *std::move(backend));
  EXPECT_THAT(model, IsOk());
  size_t at = 0;
  for (const Parameter* parameter : (*model)->model().parameters()) {
    if (parameter->name == name) break;
    at += static_cast<size_t>(parameter->shape.elements());
  }
  (*model)->parameters()[at] = std::numeric_limits<float>::quiet_NaN();
  (*model)->ParametersChanged();
  const auto loss = (*model)->TrainStep(ModelBatch(**model).view(), {}, 0.01,
                                        [](std::span<float>) { return absl::OkStatus(); });
  EXPECT_EQ(loss.status().code(), absl::StatusCode::kOutOfRange);
  return std::string(loss.status().message());
}

TEST(NumberCheckTest, NamesTheFirstLayerThatLeavesWhatIsNotFinite) {
  for (const cuda::Precision precision : {cuda::Precision::kFloat32, cuda::Precision::kBfloat16}) {
    ModelSpec cosmoflow = SmallCosmoflow(), deepcam = SmallDeepcam();
    cosmoflow.options.checks_numbers = deepcam.options.checks_numbers = true;

    EXPECT_THAT(StepWithPoisoned("conv3/kernel", cosmoflow, precision),
                ContainsRegex("loss is -?nan.*; first, the result .* of conv3 has -?nan at "));
    EXPECT_THAT(StepWithPoisoned("block2/conv2/pointwise/kernel", deepcam, precision),
                HasSubstr(" of block2/conv2/pointwise has "));
  }
}

TEST(NumberCheckTest, UnaskedNoLayerIsNamed) {
  EXPECT_THAT(StepWithPoisoned("conv3/kernel", SmallCosmoflow(), cuda::Precision::kFloat32),
              EndsWith("lower the learning rate or check the data"));
}

TEST(NumberCheckTest, WhereAllIsFiniteNothingIsSaid) {
  ModelSpec spec = SmallDeepcam();
  spec.options.checks_numbers = true;
  auto model = MakeTrainable(spec, std::make_unique<ReferenceBackend<float>>());
  ASSERT_THAT(model, IsOk());

  EXPECT_THAT((*model)->TrainStep(ModelBatch(**model).view(), {}, 0.01,
                                  [](std::span<float>) { return absl::OkStatus(); }),
              IsOk());
}

}  // namespace
}  // namespace assay::number_check
