// Training with factors in bfloat16 against training in float32: the same gradients within the
// rounding, the same quality within the spread of seeds, the same bits for the same seed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/engine/make_batch.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr char kFloat[] = "onednn";
constexpr char kBf16[] = "onednn-bf16";
constexpr int64_t kBf16BatchSize = 4;

struct Bf16Batch {
  std::vector<int16_t> voxels;
  std::vector<float> targets;
  Batch view() const { return MakeBatch(voxels, targets); }
};

std::unique_ptr<Trainable> Make(const std::string& backend, const ModelSpec& spec) {
  auto made = MakeBackend(backend);
  EXPECT_THAT(made, IsOk());
  auto model = MakeTrainable(spec, *std::move(made));
  EXPECT_THAT(model, IsOk());
  return *std::move(model);
}

ModelSpec Cosmoflow(uint64_t seed) {
  return {.name = "cosmoflow",
          .cosmoflow = {.batch = kBf16BatchSize, .cube_edge = 32, .base_filters = 8, .dropout = 0},
          .options = {.seed = seed}};
}

// Samples whose mean counts tell the targets: channel c of a sample has counts up to 2 + 8 t_c.
Bf16Batch DrawBatch(uint32_t salt) {
  constexpr int64_t kVoxels = 32 * 32 * 32, kChannels = 4;
  const Stream stream(17, Purpose::kTest, salt);
  Bf16Batch batch;
  for (int64_t i = 0; i < kBf16BatchSize * kChannels; ++i)
    batch.targets.push_back(2 * stream.Uniform(static_cast<uint64_t>(i)) - 1);
  for (int64_t i = 0; i < kBf16BatchSize * kVoxels * kChannels; ++i) {
    const int64_t sample = i / (kVoxels * kChannels), channel = i % kChannels;
    const float target = batch.targets[static_cast<size_t>(sample * kChannels + channel)];
    const float u = stream.Uniform(static_cast<uint64_t>(i) + 100);
    batch.voxels.push_back(static_cast<int16_t>(u * (6 + 4 * target)));
  }
  return batch;
}

class Bf16TrainingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto backend = MakeBackend(kBf16);
    if (absl::IsUnavailable(backend.status())) GTEST_SKIP() << backend.status();
    for (uint32_t i = 0; i < 12; ++i)
      batches_.push_back(DrawBatch(i));
  }

  // Losses of `count` steps over the first eight batches.
  std::vector<float> Train(Trainable* model, uint64_t count) const {
    std::vector<float> losses;
    for (uint64_t step = 0; step < count; ++step) {
      const auto loss = model->TrainStep(batches_[step % 8].view(), {.step = step}, 0.01,
                                         [](std::span<float>) { return absl::OkStatus(); });
      EXPECT_THAT(loss, IsOk());
      losses.push_back(loss.value_or(0));
    }
    return losses;
  }

  // Mean absolute error over the last four, which nobody trained on.
  double Error(Trainable* model) const {
    EvalSums sums;
    for (size_t i = 8; i < 12; ++i) {
      const auto sum = model->EvalBatch(batches_[i].view());
      EXPECT_THAT(sum, IsOk());
      sums += sum.value_or(EvalSums{});
    }
    return sums.quality / (4 * kBf16BatchSize * 4);
  }

  std::vector<Bf16Batch> batches_;
};

struct FirstStep {
  double loss = 0;
  std::vector<float> gradients;
};

FirstStep RunFirstStep(Trainable* model, const Batch& batch) {
  FirstStep step;
  const auto keep = [&step](std::span<float> gradients) {
    step.gradients.assign(gradients.begin(), gradients.end());
    return absl::OkStatus();
  };
  const auto loss = model->TrainStep(batch, {}, 1e-3, keep);
  EXPECT_THAT(loss, IsOk());
  step.loss = double{loss.value_or(0)};
  return step;
}

// Of each parameter tensor the norm of the difference must stay below `share` of its gradient's.
void ExpectSameDirection(const Model& model, const FirstStep& actual, const FirstStep& expected,
                         double share) {
  size_t offset = 0;
  for (const Parameter* parameter : model.parameters()) {
    double squares = 0, errors = 0;
    for (const size_t end = offset + static_cast<size_t>(parameter->shape.elements()); offset < end;
         ++offset) {
      const double value = double{expected.gradients[offset]};
      squares += value * value;
      errors += std::pow(double{actual.gradients[offset]} - value, 2);
    }
    EXPECT_LE(std::sqrt(errors), share * std::sqrt(squares)) << parameter->name;
  }
}

// Rounding moves the maximum of about one in a hundred pooling windows, and its gradient goes
// another way: in sums of terms of either sign, sqrt(2 * 0.01) = 14 % of the norm, most in the
// first layers, which five poolings precede on the way back. Blocks by themselves are held to far
// closer tolerances in engine/conformance_test.cc.
TEST_F(Bf16TrainingTest, CosmoflowsGradientsAreThoseOfFloatWithinAQuarter) {
  for (const int64_t kernel : {2, 3}) {
    SCOPED_TRACE(kernel);
    ModelSpec spec = Cosmoflow(1);
    spec.cosmoflow.kernel = kernel;
    const auto model = Make(kBf16, spec), oracle = Make("reference", spec);

    const FirstStep actual = RunFirstStep(model.get(), batches_[0].view());
    const FirstStep expected = RunFirstStep(oracle.get(), batches_[0].view());

    EXPECT_NEAR(actual.loss, expected.loss, 0.01 * expected.loss);
    ExpectSameDirection(oracle->model(), actual, expected, 0.25);
  }
}

TEST_F(Bf16TrainingTest, RepeatsItselfBitByBitWithTheSameSeed) {
  const auto first = Make(kBf16, Cosmoflow(5)), second = Make(kBf16, Cosmoflow(5));

  EXPECT_EQ(Train(first.get(), 5), Train(second.get(), 5));
  EXPECT_TRUE(std::ranges::equal(first->parameters(), second->parameters()));
}

TEST_F(Bf16TrainingTest, ReachesTheQualityOfFloatWithinTheSpreadOfSeeds) {
  std::vector<double> float_errors, bf16_errors;
  for (const uint64_t seed : {1U, 2U, 3U}) {
    for (const char* backend : {kFloat, kBf16}) {
      const auto model = Make(backend, Cosmoflow(seed));
      const double before = Error(model.get());
      const std::vector<float> losses = Train(model.get(), 160);
      const double error = Error(model.get());
      EXPECT_LT(error, before * 2 / 3) << backend << " seed " << seed;
      EXPECT_TRUE(std::ranges::all_of(losses, [](float loss) { return std::isfinite(loss); }));
      EXPECT_TRUE(std::ranges::all_of(model->parameters(),
                                      [](float value) { return std::isfinite(value); }));
      (backend == kFloat ? float_errors : bf16_errors).push_back(error);
    }
  }
  const auto [best, worst] = std::ranges::minmax(float_errors);
  const double mean = (bf16_errors[0] + bf16_errors[1] + bf16_errors[2]) / 3;
  EXPECT_LE(mean, worst + (worst - best));
}

TEST_F(Bf16TrainingTest, ModelsOfMapsAreRefusedWithWhatToUse) {
  auto backend = MakeBackend(kBf16);
  ASSERT_THAT(backend, IsOk());
  EXPECT_THAT(MakeTrainable({.name = "deepcam"}, *std::move(backend)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("onednn-bf16 has no operations on maps; use cuda, onednn")));
}

}  // namespace
}  // namespace assay
