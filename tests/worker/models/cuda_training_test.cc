// Training through the CUDA backend on a device faked on the CPU: memory that the host must not
// touch, and steps that are recorded and replayed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/random.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/rank_average.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"

namespace assay {
namespace {

using ::testing::FloatNear;
using testing::IsOk;
using ::testing::Pointwise;

constexpr int64_t kBatch = 1;
constexpr int kSteps = 4;

ModelSpec Spec() {
  return {.name = "cosmoflow",
          .cosmoflow = {.batch = kBatch,
                        .cube_edge = 32,
                        .kernel = 2,
                        .base_filters = 1,
                        .dropout = 0.5,
                        .l2 = 0.01},
          .options = {.seed = 42, .rank = 3}};
}

struct Outcome {
  std::vector<float> losses, parameters;
  double error = 0;
  int reductions = 0;
};

Outcome Train(Trainable* model) {
  const Stream stream(5, Purpose::kTest);
  std::vector<int16_t> voxels(static_cast<size_t>(kBatch * model->input_elements()));
  for (size_t i = 0; i < voxels.size(); ++i)
    voxels[i] = static_cast<int16_t>(stream.Below(i, 5));
  const std::vector<float> targets = {0.1F, -0.5F, 0.7F, 0.3F};
  Outcome outcome;
  for (uint64_t step = 0; step < kSteps; ++step) {
    // A rate that changes, and a reduction that must reach the device.
    const auto loss = model->TrainStep(MakeBatch(voxels, targets), {.epoch = 0, .step = step},
                                       step < 2 ? 0.01 : 0.02, [&](std::span<float> gradients) {
                                         for (float& gradient : gradients)
                                           gradient *= 0.5F;
                                         ++outcome.reductions;
                                         return absl::OkStatus();
                                       });
    EXPECT_THAT(loss, IsOk());
    outcome.losses.push_back(loss.value_or(0));
  }
  outcome.error =
      model->EvalBatch(MakeBatch(voxels, targets)).value_or(EvalSums{.quality = -1}).quality;
  const std::span<float> parameters = model->parameters();
  outcome.parameters.assign(parameters.begin(), parameters.end());
  return outcome;
}

TEST(CudaTrainingTest, FollowsTheReferenceWhileStepsAreReplayed) {
  auto device = std::make_unique<cuda::HostDevice>();
  const cuda::HostDevice* const watched = device.get();
  auto backend = cuda::CudaBackend::Make(std::move(device), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(Spec(), *std::move(backend));
  auto oracle = MakeTrainable(Spec(), std::make_unique<ReferenceBackend<float>>());
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(oracle, IsOk());

  const Outcome actual = Train(model->get());
  const Outcome expected = Train(oracle->get());

  EXPECT_THAT(actual.losses, Pointwise(FloatNear(1e-5F), expected.losses));
  EXPECT_THAT(actual.parameters, Pointwise(FloatNear(1e-5F), expected.parameters));
  EXPECT_NEAR(actual.error, expected.error, 1e-5);
  EXPECT_EQ(actual.reductions, kSteps);
  EXPECT_EQ(watched->graphs(), 2);                   // gradients, update
  EXPECT_EQ(watched->launches(), 2 * (kSteps - 1));  // all but the first step
  EXPECT_GT(watched->updates(), 0);                  // dropout's place, the rate
}

// On a GPU: float32 sums in another order, so losses of a few steps differ in their last digits.
TEST(CudaTrainingTest, OnAGpuItFollowsTheReference) {
  auto backend = MakeBackend("cuda");
  if (absl::IsUnavailable(backend.status())) GTEST_SKIP() << backend.status();
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(Spec(), *std::move(backend));
  auto oracle = MakeTrainable(Spec(), std::make_unique<ReferenceBackend<float>>());
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(oracle, IsOk());

  const Outcome actual = Train(model->get());
  const Outcome expected = Train(oracle->get());

  EXPECT_THAT(actual.losses, Pointwise(FloatNear(1e-4F), expected.losses));
  EXPECT_THAT(actual.parameters, Pointwise(FloatNear(1e-4F), expected.parameters));
  EXPECT_NEAR(actual.error, expected.error, 1e-4);
}

TEST(CudaTrainingTest, AloneItLeavesGradientsOnTheDevice) {
  auto backend = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(), {});
  ASSERT_THAT(backend, IsOk());
  ModelSpec spec = Spec();
  spec.options.is_alone = true;
  auto model = MakeTrainable(spec, *std::move(backend));
  ASSERT_THAT(model, IsOk());

  EXPECT_EQ(Train(model->get()).reductions, 0);
}

TEST(CudaTrainingTest, RanksThatJoinedAverageOnTheDevice) {
  auto backend = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(Spec(), *std::move(backend));
  ASSERT_THAT(model, IsOk());
  const absl::StatusOr<std::string> id = (*model)->rank_average()->MakeId();
  ASSERT_THAT(id, IsOk());
  ASSERT_THAT((*model)->rank_average()->Join(*id, 0, 2), IsOk());

  EXPECT_EQ(Train(model->get()).reductions, 0);
}

TEST(CudaTrainingTest, ParametersWrittenOnTheHostReachTheDevice) {
  auto backend = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(Spec(), *std::move(backend));
  ASSERT_THAT(model, IsOk());

  (*model)->parameters()[7] = 3;
  (*model)->ParametersChanged();

  EXPECT_EQ((*model)->parameters()[7], 3);
}

}  // namespace
}  // namespace assay
