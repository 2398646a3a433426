// What every model in the registry must do when it trains, on the fast backend.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "common/random.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/engine/make_batch.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"

namespace assay {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

class TrainingTest : public ::testing::Test {
 protected:
  static constexpr int64_t kBatch = 4;

  static ModelSpec Spec() {
    return {.name = "cosmoflow",
            .cosmoflow = {.batch = kBatch, .cube_edge = 32, .base_filters = 8, .dropout = 0.5},
            .options = {.seed = 42, .rank = 3}};
  }

  static std::unique_ptr<Trainable> Make(const ModelSpec& spec) {
    auto backend = MakeBackend("onednn");
    EXPECT_THAT(backend, IsOk());
    auto model = MakeTrainable(spec, *std::move(backend));
    EXPECT_THAT(model, IsOk());
    return *std::move(model);
  }

  void SetUp() override {
    const auto model = Make(Spec());
    const Stream stream(5, Purpose::kTest);
    voxels_.resize(static_cast<size_t>(kBatch * model->input_elements()));
    targets_.resize(static_cast<size_t>(kBatch * model->outputs()));
    for (size_t i = 0; i < voxels_.size(); ++i)
      voxels_[i] = static_cast<int16_t>(stream.Below(i, 5));
    for (size_t i = 0; i < targets_.size(); ++i)
      targets_[i] = 1.6F * stream.Uniform(i) - 0.8F;
  }

  // Losses of `count` steps from `first` on, in epoch 0.
  std::vector<float> Train(Trainable* model, uint64_t first, uint64_t count, double rate = 0.01) {
    std::vector<float> losses;
    for (uint64_t step = first; step < first + count; ++step) {
      const auto loss = model->TrainStep(MakeBatch(voxels_, targets_), {.epoch = 0, .step = step},
                                         rate, [](std::span<float>) { return absl::OkStatus(); });
      EXPECT_THAT(loss, IsOk());
      losses.push_back(loss.value_or(0));
    }
    return losses;
  }

  double Evaluate(Trainable* model) {
    const auto sum = model->EvalBatch(MakeBatch(voxels_, targets_));
    EXPECT_THAT(sum, IsOk());
    return sum.value_or(EvalSums{}).quality / static_cast<double>(targets_.size());
  }

  static std::vector<float> Copy(std::span<const float> values) {
    return {values.begin(), values.end()};
  }

  std::vector<int16_t> voxels_;
  std::vector<float> targets_;
};

TEST_F(TrainingTest, OverfitsOneBatch) {
  ModelSpec spec = Spec();
  spec.cosmoflow.dropout = 0;
  const auto model = Make(spec);

  const std::vector<float> losses = Train(model.get(), 0, 300, 0.02);

  EXPECT_GT(losses.front(), 0.05);
  EXPECT_LT(losses.back(), 1e-3);
  EXPECT_LT(Evaluate(model.get()), 0.03);
}

TEST_F(TrainingTest, RepeatsItselfBitByBitWithTheSameSeed) {
  const auto first = Make(Spec()), second = Make(Spec());

  EXPECT_EQ(Train(first.get(), 0, 5), Train(second.get(), 0, 5));
  EXPECT_EQ(Copy(first->parameters()), Copy(second->parameters()));
}

TEST_F(TrainingTest, DiffersWithAnotherSeedAndWithAnotherRanksDropout) {
  ModelSpec other_seed = Spec(), other_rank = Spec();
  other_seed.options.seed = 43;
  other_rank.options.rank = 4;
  const auto base = Make(Spec()), reseeded = Make(other_seed), moved = Make(other_rank);

  EXPECT_NE(Copy(base->parameters()), Copy(reseeded->parameters()));
  EXPECT_EQ(Copy(base->parameters()), Copy(moved->parameters()));
  EXPECT_NE(Train(base.get(), 0, 1), Train(moved.get(), 0, 1));
}

TEST_F(TrainingTest, ResumesBitByBitFromParametersAndVelocity) {
  const auto whole = Make(Spec()), first = Make(Spec()), second = Make(Spec());
  const std::vector<float> expected = Train(whole.get(), 0, 6);

  std::vector<float> losses = Train(first.get(), 0, 3);
  std::copy(first->parameters().begin(), first->parameters().end(), second->parameters().begin());
  std::copy(first->optimizer_state().begin(), first->optimizer_state().end(),
            second->optimizer_state().begin());
  second->ParametersChanged();
  const std::vector<float> rest = Train(second.get(), 3, 3);
  losses.insert(losses.end(), rest.begin(), rest.end());

  EXPECT_EQ(losses, expected);
  EXPECT_EQ(Copy(second->parameters()), Copy(whole->parameters()));
}

TEST_F(TrainingTest, DropsOutInTrainingAndNotInEvaluation) {
  const auto model = Make(Spec());

  const double before = Evaluate(model.get());
  const std::vector<float> predictions = Copy(model->predictions());
  const float step0 = Train(model.get(), 0, 1, 0)[0];  // a rate of 0 changes nothing
  const float step1 = Train(model.get(), 1, 1, 0)[0];

  EXPECT_NE(step0, step1);
  EXPECT_EQ(Evaluate(model.get()), before);
  EXPECT_EQ(Copy(model->predictions()), predictions);
}

TEST_F(TrainingTest, EvaluatesAShortBatchAsPartOfAFullOne) {
  const auto model = Make(Spec());
  Evaluate(model.get());
  const std::vector<float> predictions = Copy(model->predictions());
  const auto outputs = static_cast<size_t>(model->outputs());
  const auto voxels = static_cast<size_t>(model->input_elements());

  double sum = 0;
  for (size_t i = 0; i < outputs; ++i)
    sum += std::abs(double{predictions[outputs + i]} - double{targets_[outputs + i]});
  const auto second_alone = model->EvalBatch(MakeBatch(
      std::span(voxels_).subspan(voxels, voxels), std::span(targets_).subspan(outputs, outputs)));

  ASSERT_THAT(second_alone, IsOk());
  EXPECT_NEAR(second_alone->quality, sum, 1e-5);
}

TEST_F(TrainingTest, StepsAlongTheReducedGradients) {
  const auto model = Make(Spec());
  const std::vector<float> before = Copy(model->parameters());

  const auto loss =
      model->TrainStep(MakeBatch(voxels_, targets_), {}, 0.5, [](std::span<float> gradients) {
        std::fill(gradients.begin(), gradients.end(), 0.25F);
        return absl::OkStatus();
      });

  ASSERT_THAT(loss, IsOk());
  for (size_t i = 0; i < before.size(); ++i)
    ASSERT_FLOAT_EQ(model->parameters()[i], before[i] - 0.125F);
  EXPECT_THAT(Copy(model->optimizer_state()), Each(-0.125F));
}

TEST_F(TrainingTest, LeavesParametersAloneWhenReductionFails) {
  const auto model = Make(Spec());
  const std::vector<float> before = Copy(model->parameters());

  const auto loss = model->TrainStep(MakeBatch(voxels_, targets_), {}, 0.5, [](std::span<float>) {
    return absl::DeadlineExceededError("rank 1 is gone");
  });

  EXPECT_THAT(loss, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 1")));
  EXPECT_EQ(Copy(model->parameters()), before);
}

TEST_F(TrainingTest, ReportsALossThatIsNotFinite) {
  const auto model = Make(Spec());
  std::fill(model->parameters().begin(), model->parameters().end(),
            std::numeric_limits<float>::quiet_NaN());
  model->ParametersChanged();
  bool was_reduced = false;

  const auto loss = model->TrainStep(MakeBatch(voxels_, targets_), {.epoch = 2, .step = 7}, 0.1,
                                     [&was_reduced](std::span<float>) {
                                       was_reduced = true;
                                       return absl::OkStatus();
                                     });

  EXPECT_THAT(loss, StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("epoch 2, step 7")));
  EXPECT_TRUE(was_reduced);
  EXPECT_THAT(model->EvalBatch(MakeBatch(voxels_, targets_)),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(ModelRegistryTest, NamesTheModelsItHasWhenAskedForAnother) {
  auto backend = MakeBackend("reference");
  ASSERT_THAT(backend, IsOk());

  EXPECT_THAT(MakeTrainable({.name = "resnet"}, *std::move(backend)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("cosmoflow")));
}

}  // namespace
}  // namespace assay
