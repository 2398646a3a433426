// Training through the CUDA backend on a device faked on the CPU: memory that the host must not
// touch, and steps that are recorded and replayed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "common/random.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "tests/worker/engine/make_batch.h"
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
// steps: with maps of 32 x 32 even the CPU backend is 1e-2 away from the reference then. Here a
// ReLU that rounding errors decide moves parameters by up to some 1e-3; first gradients are far
// closer.
ModelSpec Deepcam() {
  return {.name = "deepcam",
          .deepcam = {.batch = 2, .height = 64, .width = 64, .base_filters = 2, .middle_blocks = 1},
          .options = {.seed = 42,
                      .rank = 3,
                      .optimizer = {.kind = OptimizerOptions::Kind::kLamb, .weight_decay = 0.01}}};
}

struct TrainingOutcome {
  std::vector<float> losses, parameters;
  EvalSums evaluation;
  int reductions = 0;
};

TrainingOutcome Train(Trainable* model) {
  const ModelBatch batch(*model);
  TrainingOutcome outcome;
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

std::vector<float> FirstGradients(Trainable* model) {
  std::vector<float> kept;
  const auto loss =
      model->TrainStep(ModelBatch(*model).view(), {}, 0.01, [&kept](std::span<float> gradients) {
        kept.assign(gradients.begin(), gradients.end());
        return absl::OkStatus();
      });
  EXPECT_THAT(loss, IsOk());
  return kept;
}

// What else than the order of sums tells the backends apart is far larger than `tolerance`.
void ExpectFollows(const TrainingOutcome& actual, const TrainingOutcome& expected,
                   float tolerance) {
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

struct TrainingCase {
  const char* name;
  ModelSpec spec;
  float tolerance;      // on the fake
  float gpu_tolerance;  // sums in another order, of float32
};

void PrintTo(const TrainingCase& row, std::ostream* out) {
  *out << row.name;
}

class CudaTrainingTest : public ::testing::TestWithParam<TrainingCase> {
 protected:
  // What the reference makes of the same steps.
  static TrainingOutcome Expected() {
    auto oracle = MakeTrainable(GetParam().spec, std::make_unique<ReferenceBackend<float>>());
    EXPECT_THAT(oracle, IsOk());
    return Train(oracle->get());
  }
};

// What comes after may be on a run's clock.
TEST_P(CudaTrainingTest, EnginesAreChosenWhileTheModelIsBuiltAndNeverAfterwards) {
  auto device = std::make_unique<cuda::HostDevice>();
  const cuda::HostDevice* const watched = device.get();
  auto backend = cuda::CudaBackend::Make(std::move(device), {.engines = {.is_timed = true}});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(GetParam().spec, *std::move(backend));
  ASSERT_THAT(model, IsOk());
  const int plans = watched->plans(), timed = watched->timed();
  EXPECT_GT(timed, 0);
  EXPECT_FALSE((*model)->engine_choices().choices.empty());

  Train(model->get());

  EXPECT_EQ(watched->plans(), plans);
  EXPECT_EQ(watched->timed(), timed);
}

TEST_P(CudaTrainingTest, FollowsTheReferenceWhileStepsAreReplayed) {
  auto device = std::make_unique<cuda::HostDevice>();
  const cuda::HostDevice* const watched = device.get();
  auto backend = cuda::CudaBackend::Make(std::move(device), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(GetParam().spec, *std::move(backend));
  ASSERT_THAT(model, IsOk());

  const TrainingOutcome actual = Train(model->get());

  ExpectFollows(actual, Expected(), GetParam().tolerance);
  EXPECT_EQ(actual.reductions, kSteps);
  EXPECT_EQ(watched->graphs(), 2);                   // gradients, update
  EXPECT_EQ(watched->launches(), 2 * (kSteps - 1));  // all but the first step
  EXPECT_GT(watched->updates(), 0);                  // dropout's place, the rate
}

// Of the first step, which nothing before it blurs, and of each tensor: the norm of the difference
// must stay below a ten-thousandth of the gradient's, or be nothing: a shift in front of a batch
// normalisation has none.
TEST_P(CudaTrainingTest, FirstGradientsAreThoseOfTheReference) {
  auto backend = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(GetParam().spec, *std::move(backend));
  auto oracle = MakeTrainable(GetParam().spec, std::make_unique<ReferenceBackend<float>>());
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(oracle, IsOk());
  const std::vector<float> actual = FirstGradients(model->get());
  const std::vector<float> expected = FirstGradients(oracle->get());

  size_t i = 0;
  for (const Parameter* parameter : (*oracle)->model().parameters()) {
    double difference = 0, length = 0;
    for (const size_t end = i + static_cast<size_t>(parameter->shape.elements()); i < end; ++i) {
      difference += std::pow(double{actual[i]} - double{expected[i]}, 2);
      length += std::pow(double{expected[i]}, 2);
    }
    EXPECT_LE(std::sqrt(difference), 1e-4 * std::sqrt(length) + 1e-8) << parameter->name;
  }
}

TEST_P(CudaTrainingTest, WithoutEpiloguesItEvaluatesTheSame) {
  auto device = std::make_unique<cuda::HostDevice>();
  device->set_refuses_epilogues(true);
  auto backend = cuda::CudaBackend::Make(std::move(device), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(GetParam().spec, *std::move(backend));
  ASSERT_THAT(model, IsOk());

  ExpectFollows(Train(model->get()), Expected(), GetParam().tolerance);
}

// What plans a convolution may compile for a second, which the clock of a run must not see.
TEST_P(CudaTrainingTest, NothingIsPlannedOnceTheModelStands) {
  auto device = std::make_unique<cuda::HostDevice>();
  const cuda::HostDevice* const watched = device.get();
  auto backend = cuda::CudaBackend::Make(std::move(device), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(GetParam().spec, *std::move(backend));
  ASSERT_THAT(model, IsOk());
  const int before = watched->plans();

  Train(model->get());

  EXPECT_GT(before, 0);
  EXPECT_EQ(watched->plans(), before);
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
                         ::testing::Values(TrainingCase{"cosmoflow", Cosmoflow(), 1e-5F, 1e-4F},
                                           TrainingCase{"deepcam", Deepcam(), 5e-3F, 1e-2F}),
                         [](const auto& test) { return std::string(test.param.name); });

// --- Maps in bfloat16 ---

// Inputs of which one channel tells the labels.
struct LearnableBatch {
  explicit LearnableBatch(const DeepcamSpec& spec) {
    const Stream stream(3, Purpose::kTest);
    const auto pixels = static_cast<size_t>(spec.batch * spec.height * spec.width);
    for (size_t i = 0; i < pixels * kDeepcamChannels; ++i)
      input.push_back(stream.Uniform(i));
    for (size_t pixel = 0; pixel < pixels; ++pixel) {
      labels.push_back(static_cast<uint8_t>(stream.Below(input.size() + pixel / 64, 3)));
      input[pixel * kDeepcamChannels] += static_cast<float>(labels.back());
    }
  }
  Batch view() const { return MakeBatch(input, labels); }

  std::vector<float> input;
  std::vector<uint8_t> labels;
};

ModelSpec SmallDeepcam() {
  return {.name = "deepcam",
          .deepcam = {.batch = 2, .height = 32, .width = 48, .base_filters = 4, .middle_blocks = 1},
          .options = {.seed = 5, .optimizer = {.kind = OptimizerOptions::Kind::kAdam}}};
}

std::unique_ptr<Backend> MakeBf16(cuda::Precision most) {
  auto device = std::make_unique<cuda::HostDevice>();
  device->set_most_precision(most);
  auto backend = cuda::CudaBackend::Make(
      std::move(device), {.name = "cuda-bf16", .precision = cuda::Precision::kBfloat16});
  EXPECT_THAT(backend, IsOk());
  return *std::move(backend);
}

std::vector<float> Losses(std::unique_ptr<Backend> backend, uint64_t steps) {
  const ModelSpec spec = SmallDeepcam();
  const LearnableBatch batch(spec.deepcam);
  auto model = MakeTrainable(spec, std::move(backend));
  EXPECT_THAT(model, IsOk());
  std::vector<float> losses;
  for (uint64_t step = 0; step < steps; ++step) {
    const auto loss = (*model)->TrainStep(batch.view(), {.step = step}, 1e-3,
                                          [](std::span<float>) { return absl::OkStatus(); });
    EXPECT_THAT(loss, IsOk());
    losses.push_back(loss.value_or(0));
  }
  return losses;
}

// As Bf16TrainingTest demands of the CPU's bfloat16, though here also what lies between layers is
// rounded.
TEST(CudaBf16MapsTest, DeepcamsLossIsThatOfFloatAndFallsAsFast) {
  const std::vector<float> actual = Losses(MakeBf16(cuda::Precision::kBfloat16), 20);
  const std::vector<float> expected = Losses(std::make_unique<ReferenceBackend<float>>(), 20);

  EXPECT_NEAR(actual.front(), expected.front(), 0.02 * double{expected.front()});
  EXPECT_LT(actual.back(), 0.9 * double{actual.front()});
  EXPECT_NEAR(actual.back(), expected.back(), 0.1 * double{expected.front()});
}

TEST(CudaBf16MapsTest, ALibraryWithoutBf16TrainsInTf32) {
  const std::vector<float> actual = Losses(MakeBf16(cuda::Precision::kTf32), 2);
  const std::vector<float> expected = Losses(std::make_unique<ReferenceBackend<float>>(), 2);

  EXPECT_THAT(actual, Pointwise(FloatNear(0.03F * expected.front()), expected));
}

TEST(CudaBf16MapsTest, StepsRepeatBitByBit) {
  EXPECT_EQ(Losses(MakeBf16(cuda::Precision::kBfloat16), 3),
            Losses(MakeBf16(cuda::Precision::kBfloat16), 3));
}

// What a GPU and its libraries make of each precision, with the bounds of the above.
class OnAGpuTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto backend = MakeBackend(GetParam());
    if (absl::IsUnavailable(backend.status())) GTEST_SKIP() << backend.status();
    ASSERT_THAT(backend, IsOk());
  }
};

TEST_P(OnAGpuTest, DeepcamsLossIsThatOfFloatAndFallsAsFast) {
  const std::vector<float> actual = Losses(*MakeBackend(GetParam()), 20);
  const std::vector<float> expected = Losses(std::make_unique<ReferenceBackend<float>>(), 20);

  EXPECT_NEAR(actual.front(), expected.front(), 0.02 * double{expected.front()});
  EXPECT_LT(actual.back(), 0.9 * double{actual.front()});
  EXPECT_NEAR(actual.back(), expected.back(), 0.1 * double{expected.front()});
}

TEST_P(OnAGpuTest, CosmoflowsLossIsThatOfFloat) {
  auto model = MakeTrainable(Cosmoflow(), *MakeBackend(GetParam()));
  auto oracle = MakeTrainable(Cosmoflow(), std::make_unique<ReferenceBackend<float>>());
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(oracle, IsOk());

  const std::vector<float> actual = Train(model->get()).losses;
  const std::vector<float> expected = Train(oracle->get()).losses;

  EXPECT_NEAR(actual.front(), expected.front(), 0.03 * double{expected.front()});
  EXPECT_THAT(actual, Pointwise(FloatNear(0.1F * expected.front()), expected));
}

TEST_P(OnAGpuTest, StepsRepeatBitByBit) {
  EXPECT_EQ(Losses(*MakeBackend(GetParam()), 5), Losses(*MakeBackend(GetParam()), 5));
}

INSTANTIATE_TEST_SUITE_P(Precisions, OnAGpuTest,
                         ::testing::Values("cuda", "cuda-tf32", "cuda-bf16"), [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(CudaBf16MapsTest, MapsTakeHalfOfTheMemory) {
  auto floats = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(), {});
  ASSERT_THAT(floats, IsOk());
  auto model = MakeTrainable(SmallDeepcam(), MakeBf16(cuda::Precision::kBfloat16));
  auto wide = MakeTrainable(SmallDeepcam(), *std::move(floats));
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(wide, IsOk());

  EXPECT_LT((*model)->model().activation_bytes(),
            0.65 * static_cast<double>((*wide)->model().activation_bytes()));
}

// What starting a step costs at small batches: a call for each kernel, product or convolution.
TEST(CudaCallsTest, AStepOfDeepcamIsFewCalls) {
  auto device = std::make_unique<cuda::HostDevice>();
  const cuda::HostDevice* const watched = device.get();
  auto backend = cuda::CudaBackend::Make(std::move(device), {});
  ASSERT_THAT(backend, IsOk());
  ModelSpec spec = Deepcam();
  spec.deepcam.middle_blocks = 16;
  auto model = MakeTrainable(spec, *std::move(backend));
  ASSERT_THAT(model, IsOk());
  const ModelBatch batch(**model);
  const int before = watched->issued();

  ASSERT_THAT((*model)->TrainStep(batch.view(), {}, 0.01,
                                  [](std::span<float>) { return absl::OkStatus(); }),
              IsOk());

  EXPECT_LT(watched->issued() - before, 1'300);
  RecordProperty("calls", watched->issued() - before);
}

// What stops the device's work, and moves slowly: only losses, counts and what is asked for.
TEST(CudaCopiesTest, PredictionsStayOnTheDeviceUntilTheyAreAskedFor) {
  auto device = std::make_unique<cuda::HostDevice>();
  const cuda::HostDevice* const watched = device.get();
  auto backend = cuda::CudaBackend::Make(std::move(device), {});
  ASSERT_THAT(backend, IsOk());
  ModelSpec spec = Deepcam();
  spec.options.reduction.is_alone = true;
  auto model = MakeTrainable(spec, *std::move(backend));
  auto oracle = MakeTrainable(spec, std::make_unique<ReferenceBackend<float>>());
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(oracle, IsOk());
  const LearnableBatch batch(spec.deepcam);
  const auto reduce = [](std::span<float>) { return absl::OkStatus(); };
  const size_t before = watched->bytes_out();

  ASSERT_THAT((*model)->TrainStep(batch.view(), {}, 0.01, reduce), IsOk());
  EXPECT_EQ(watched->bytes_out() - before, sizeof(float));  // the loss
  const auto train_quality = (*model)->TrainQuality();
  const auto sums = (*model)->EvalBatch(batch.view());
  ASSERT_THAT(sums, IsOk());
  const size_t counts = 2 * 2 * 3 * sizeof(float);  // both and either, samples, classes
  EXPECT_EQ(watched->bytes_out() - before, 2 * sizeof(float) + 2 * counts);

  ASSERT_THAT((*oracle)->TrainStep(batch.view(), {}, 0.01, reduce), IsOk());
  EXPECT_NEAR(train_quality.value_or(-1), (*oracle)->TrainQuality().value_or(-2), 1e-3);
  const EvalSums expected = (*oracle)->EvalBatch(batch.view()).value_or(EvalSums{});
  EXPECT_NEAR(sums->loss, expected.loss, 1e-2 * expected.loss);
  EXPECT_NEAR(sums->quality, expected.quality, 1e-2);
  const size_t until = watched->bytes_out();
  EXPECT_EQ((*model)->predictions().size(), size_t{2} * 64 * 64 * 3);
  EXPECT_EQ(watched->bytes_out() - until, size_t{2} * 64 * 64 * 3 * sizeof(float));
}

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
  ModelSpec spec = Deepcam();
  // No ReLU of these four steps is so near to 0 that rounding errors decide whether it cuts: one
  // that is moves all gradients in front of it by a percent, on any backend.
  spec.options.seed = 44;
  auto model = MakeTrainable(spec, *std::move(backend));
  auto oracle = MakeTrainable(spec, std::make_unique<ReferenceBackend<float>>());
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
  spec.options.reduction.is_alone = true;
  auto model = MakeTrainable(spec, *std::move(backend));
  ASSERT_THAT(model, IsOk());

  EXPECT_EQ(Train(model->get()).reductions, 0);
}

TEST(CudaGradientsTest, RanksThatJoinedAverageOnTheDevice) {
  auto backend = cuda::CudaBackend::Make(std::make_unique<cuda::HostDevice>(), {});
  ASSERT_THAT(backend, IsOk());
  auto model = MakeTrainable(Cosmoflow(), *std::move(backend));
  ASSERT_THAT(model, IsOk());
  const absl::StatusOr<std::string> id = (*model)->reducer().device()->MakeId();
  ASSERT_THAT(id, IsOk());
  // Alone, because the others are the same: tests/worker/trainer/device_training_test.cc has more.
  ASSERT_THAT((*model)->reducer().device()->Join({.id = *id, .timeout = absl::Seconds(10)}),
              IsOk());

  EXPECT_EQ(Train(model->get()).reductions, 0);
  EXPECT_EQ((*model)->reducer().counts().averages, kSteps);  // all gradients are one small bucket
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
