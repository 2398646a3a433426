// Training through the CUDA backend on a device faked on the CPU: memory that the host must not
// touch, and steps that are recorded and replayed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "tests/worker/models/model_batch.h"
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

constexpr int kSteps = 4;

ModelSpec Cosmoflow() {
  return {
      .name = "cosmoflow",
      .cosmoflow =
          {.batch = 1, .cube_edge = 32, .kernel = 2, .base_filters = 1, .dropout = 0.5, .l2 = 0.01},
      .options = {.seed = 42, .rank = 3}};
}

// Large enough that normalisation over few pixels does not blow rounding errors up within four
// steps: with maps of 32 x 32 even the CPU backend is 1e-2 away from the reference then.
ModelSpec Deepcam() {
  return {.name = "deepcam",
          .deepcam = {.batch = 2, .height = 64, .width = 64, .base_filters = 2, .middle_blocks = 1},
          .options = {.seed = 42,
                      .rank = 3,
                      .optimizer = {.kind = OptimizerOptions::Kind::kLamb, .weight_decay = 0.01}}};
}

struct Outcome {
  std::vector<float> losses, parameters;
  EvalSums evaluation;
  int reductions = 0;
};

Outcome Train(Trainable* model) {
  const ModelBatch batch(*model);
  Outcome outcome;
  for (uint64_t step = 0; step < kSteps; ++step) {
    // A rate that changes, and a reduction that must reach the device.
    const auto loss = model->TrainStep(batch.view(), {.epoch = 0, .step = step},
                                       step < 2 ? 0.01 : 0.02, [&](std::span<float> gradients) {
                                         for (float& gradient : gradients)
                                           gradient *= 0.5F;
                                         ++outcome.reductions;
                                         return absl::OkStatus();
                                       });
    EXPECT_THAT(loss, IsOk());
    outcome.losses.push_back(loss.value_or(0));
  }
  outcome.evaluation = model->EvalBatch(batch.view()).value_or(EvalSums{.quality = -1});
  const std::span<float> parameters = model->parameters();
  outcome.parameters.assign(parameters.begin(), parameters.end());
  return outcome;
}

// What else than the order of sums tells the backends apart is far larger than `tolerance`.
void ExpectFollows(const Outcome& actual, const Outcome& expected, float tolerance) {
  EXPECT_THAT(actual.losses, Pointwise(FloatNear(tolerance), expected.losses));
  EXPECT_NEAR(actual.evaluation.loss, expected.evaluation.loss, tolerance);
  EXPECT_NEAR(actual.evaluation.quality, expected.evaluation.quality, tolerance);
  ASSERT_EQ(actual.parameters.size(), expected.parameters.size());
  double difference = 0, length = 0;
  for (size_t i = 0; i < expected.parameters.size(); ++i) {
    const double value = expected.parameters[i];
    difference += std::pow(double{actual.parameters[i]} - value, 2);
    length += value * value;
  }
  EXPECT_LT(std::sqrt(difference / length), tolerance);
}

struct Case {
  const char* name;
  ModelSpec spec;
  float tolerance;      // on the fake
  float gpu_tolerance;  // sums in another order, of float32
};

void PrintTo(const Case& row, std::ostream* out) {
  *out << row.name;
}

class CudaTrainingTest : public ::testing::TestWithParam<Case> {
 protected:
  // What the reference makes of the same steps.
  static Outcome Expected() {
    auto oracle = MakeTrainable(GetParam().spec, std::make_unique<ReferenceBackend<float>>());
    EXPECT_THAT(oracle, IsOk());
    return Train(oracle->get());
  }
};

TEST_P(CudaTrainingTest, FollowsTheReferenceWhileStepsAreReplayed) {
  auto device = std::make_unique<cuda::HostDevice>();
  const cuda::HostDevice* const watched = device.get();
  auto backend = cuda::CudaBackend::Make(std::move(device), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(GetParam().spec, *std::move(backend));
  ASSERT_THAT(model, IsOk());

  const Outcome actual = Train(model->get());

  ExpectFollows(actual, Expected(), GetParam().tolerance);
  EXPECT_EQ(actual.reductions, kSteps);
  EXPECT_EQ(watched->graphs(), 2);                   // gradients, update
  EXPECT_EQ(watched->launches(), 2 * (kSteps - 1));  // all but the first step
  EXPECT_GT(watched->updates(), 0);                  // dropout's place, the rate
}

TEST_P(CudaTrainingTest, OnAGpuItFollowsTheReference) {
  auto backend = MakeBackend("cuda");
  if (absl::IsUnavailable(backend.status())) GTEST_SKIP() << backend.status();
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(GetParam().spec, *std::move(backend));
  ASSERT_THAT(model, IsOk());

  ExpectFollows(Train(model->get()), Expected(), GetParam().gpu_tolerance);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaTrainingTest,
                         ::testing::Values(Case{"cosmoflow", Cosmoflow(), 1e-5F, 1e-4F},
                                           Case{"deepcam", Deepcam(), 1e-3F, 1e-2F}),
                         [](const auto& test) { return std::string(test.param.name); });

// Shrinks what it is given, so that numbers of another moment would be noticed.
class ShrinkingGroup : public GroupMean {
 public:
  void Average(const Tensor& values) override {
    for (float& value : values.Span<float>())
      value *= 0.9F;
  }
  int size() const override { return 2; }
};

TEST(CudaGroupTest, SharedNormalisationInterruptsReplaysAndFollowsTheReference) {
  ShrinkingGroup group;
  auto backend = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(Deepcam(), *std::move(backend));
  auto oracle = MakeTrainable(Deepcam(), std::make_unique<ReferenceBackend<float>>());
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(oracle, IsOk());
  (*model)->set_group(&group);
  (*oracle)->set_group(&group);

  ExpectFollows(Train(model->get()), Train(oracle->get()), 1e-3F);
}

TEST(CudaGradientsTest, AloneItLeavesGradientsOnTheDevice) {
  auto backend = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(), {});
  ASSERT_THAT(backend, IsOk());
  ModelSpec spec = Cosmoflow();
  spec.options.is_alone = true;
  auto model = MakeTrainable(spec, *std::move(backend));
  ASSERT_THAT(model, IsOk());

  EXPECT_EQ(Train(model->get()).reductions, 0);
}

TEST(CudaGradientsTest, RanksThatJoinedAverageOnTheDevice) {
  auto backend = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(Cosmoflow(), *std::move(backend));
  ASSERT_THAT(model, IsOk());
  const absl::StatusOr<std::string> id = (*model)->rank_average()->MakeId();
  ASSERT_THAT(id, IsOk());
  // Alone, because the others are the same: tests/worker/trainer/device_training_test.cc has more.
  ASSERT_THAT((*model)->rank_average()->Join({.id = *id, .timeout = absl::Seconds(10)}), IsOk());

  EXPECT_EQ(Train(model->get()).reductions, 0);
  EXPECT_EQ((*model)->average_counts().averages, kSteps);  // all gradients are one small bucket
}

TEST(CudaGradientsTest, ParametersWrittenOnTheHostReachTheDevice) {
  auto backend = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(Cosmoflow(), *std::move(backend));
  ASSERT_THAT(model, IsOk());

  (*model)->parameters()[7] = 3;
  (*model)->ParametersChanged();

  EXPECT_EQ((*model)->parameters()[7], 3);
}

}  // namespace
}  // namespace assay
