// Evaluation in batches of another size than training's: the same numbers, from the same weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

using testing::IsOk;

constexpr int64_t kSamples = 16;

std::unique_ptr<Trainable> Make(ModelSpec spec, int64_t eval_batch) {
  spec.eval_batch = eval_batch;
  auto backend = MakeBackend("onednn");
  EXPECT_THAT(backend, IsOk());
  auto model = MakeTrainable(spec, *std::move(backend));
  EXPECT_THAT(model, IsOk());
  return *std::move(model);
}

// Samples of a model, in any number.
template <typename Input, typename Target>
struct Samples {
  std::vector<Input> input;
  std::vector<Target> targets;

  Batch Part(int64_t first, int64_t count) const {
    const size_t inputs = input.size() / kSamples, outputs = targets.size() / kSamples;
    const auto at = static_cast<size_t>(first), n = static_cast<size_t>(count);
    return MakeBatch(std::span(input).subspan(at * inputs, n * inputs),
                     std::span(targets).subspan(at * outputs, n * outputs));
  }
};

Samples<int16_t, float> Cubes() {
  const Stream stream(3, Purpose::kTest);
  Samples<int16_t, float> samples;
  samples.input.resize(kSamples * 32 * 32 * 32 * kCosmoflowChannels);
  for (size_t i = 0; i < samples.input.size(); ++i)
    samples.input[i] = static_cast<int16_t>(stream.Below(i, 5));
  for (size_t i = 0; i < kSamples * kCosmoflowOutputs; ++i)
    samples.targets.push_back(stream.Uniform(samples.input.size() + i) - 0.5F);
  return samples;
}

Samples<float, uint8_t> Maps() {
  const Stream stream(3, Purpose::kTest);
  Samples<float, uint8_t> samples;
  samples.input.resize(kSamples * 16 * 32 * kDeepcamChannels);
  for (size_t i = 0; i < samples.input.size(); ++i)
    samples.input[i] = stream.Uniform(i);
  for (size_t i = 0; i < kSamples * 16 * 32; ++i)
    samples.targets.push_back(static_cast<uint8_t>(stream.Below(samples.input.size() + i, 3)));
  return samples;
}

struct EvaluationOutcome {
  std::vector<float> predictions;
  EvalSums sums;
};

// Evaluates, trains two steps, evaluates again: the second time the weights and, where there are,
// the running statistics are others.
template <typename Data>
std::vector<EvaluationOutcome> Run(const ModelSpec& spec, int64_t eval_batch, const Data& data) {
  const auto model = Make(spec, eval_batch);
  EXPECT_EQ(model->eval_batch_size(), eval_batch);
  std::vector<EvaluationOutcome> outcomes(2);
  for (EvaluationOutcome& outcome : outcomes) {
    for (int64_t first = 0; first < kSamples; first += eval_batch) {
      const int64_t count = std::min(eval_batch, kSamples - first);
      const auto sums = model->EvalBatch(data.Part(first, count));
      EXPECT_THAT(sums, IsOk());
      if (sums.ok()) outcome.sums += *sums;
      const std::span<const float> all = model->predictions();
      outcome.predictions.insert(outcome.predictions.end(), all.begin(),
                                 all.begin() + count * model->outputs());
    }
    for (uint64_t step = 0; step < 2; ++step) {
      const auto loss =
          model->TrainStep(data.Part(static_cast<int64_t>(step) * 2, 2), {.epoch = 0, .step = step},
                           0.01, [](std::span<float>) { return absl::OkStatus(); });
      EXPECT_THAT(loss, IsOk());
    }
  }
  return outcomes;
}

// 5 does not divide the samples, so its last batch is short.
template <typename Data>
void ExpectEqualWhateverTheBatch(const ModelSpec& spec, const Data& data) {
  const std::vector<EvaluationOutcome> expected = Run(spec, 2, data);  // as in training
  EXPECT_NE(expected[0].predictions, expected[1].predictions);
  for (const int64_t eval_batch : {1, 4, 5, 16}) {
    SCOPED_TRACE(eval_batch);
    const std::vector<EvaluationOutcome> found = Run(spec, eval_batch, data);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_THAT(found[i].predictions,
                  ::testing::Pointwise(::testing::FloatNear(1e-5F), expected[i].predictions));
      EXPECT_NEAR(found[i].sums.loss, expected[i].sums.loss, 1e-5 * expected[i].sums.loss);
    }
  }
}

TEST(EvalBatchTest, CosmoflowPredictsTheSame) {
  const ModelSpec spec = {.name = "cosmoflow",
                          .cosmoflow = {.batch = 2, .cube_edge = 32, .base_filters = 4},
                          .options = {.seed = 42}};
  ExpectEqualWhateverTheBatch(spec, Cubes());
}

TEST(EvalBatchTest, DeepcamPredictsTheSame) {
  const ModelSpec spec = {
      .name = "deepcam",
      .deepcam = {.batch = 2, .height = 16, .width = 32, .base_filters = 4, .middle_blocks = 1},
      .options = {.seed = 5, .optimizer = {.kind = OptimizerOptions::Kind::kAdam}}};
  ExpectEqualWhateverTheBatch(spec, Maps());
}

// The weights are the trained model's own, and nothing is kept for a backward pass.
TEST(EvalBatchTest, TheModelForEvaluationHasNoMemoryForGradients) {
  auto backend = MakeBackend("onednn");
  ASSERT_THAT(backend, IsOk());
  const CosmoflowSpec spec = {.batch = 4, .cube_edge = 32, .base_filters = 4};
  const auto trained = MakeCosmoflow(spec, backend->get());
  ASSERT_THAT(trained, IsOk());

  const auto evaluation = MakeCosmoflow(spec, backend->get(), nullptr, trained->get());

  ASSERT_THAT(evaluation, IsOk());
  EXPECT_LT((*evaluation)->activation_bytes(), (*trained)->activation_bytes());
  for (size_t i = 0; i < (*trained)->parameters().size(); ++i) {
    EXPECT_EQ((*evaluation)->parameters()[i]->value.data, (*trained)->parameters()[i]->value.data);
    EXPECT_EQ((*evaluation)->parameters()[i]->gradient.data, nullptr);
  }
}

}  // namespace
}  // namespace assay
