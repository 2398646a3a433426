#include "worker/models/deepcam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
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

constexpr DeepcamSpec kSmall = {
    .batch = 2, .height = 32, .width = 48, .base_filters = 4, .middle_blocks = 1};

std::unique_ptr<Trainable> MakeTrained(const DeepcamSpec& spec, const std::string& backend,
                                       const TrainableOptions& options = {.seed = 5}) {
  auto made = MakeBackend(backend);
  EXPECT_THAT(made, IsOk());
  auto model =
      MakeTrainable({.name = "deepcam", .deepcam = spec, .options = options}, *std::move(made));
  EXPECT_THAT(model, IsOk());
  return *std::move(model);
}

// Inputs as after normalisation; labels follow two of the channels, so that they can be learnt.
struct DeepcamBatch {
  explicit DeepcamBatch(const DeepcamSpec& spec, uint32_t salt = 0) {
    const Stream stream(3, Purpose::kTest, salt);
    const size_t pixels = static_cast<size_t>(spec.batch * spec.height * spec.width);
    input.resize(pixels * kDeepcamChannels);
    for (size_t i = 0; i < input.size(); ++i)
      input[i] = stream.Uniform(i);
    for (size_t pixel = 0; pixel < pixels; ++pixel) {
      const size_t block = pixel / 64;
      const uint32_t draw = stream.Below(input.size() + block, 8);
      labels.push_back(static_cast<uint8_t>(draw < 2 ? draw + 1 : 0));
      for (size_t c = 0; c < 4; ++c)
        input[pixel * kDeepcamChannels + c] += static_cast<float>(labels.back()) / 2;
    }
  }
  Batch view() const { return MakeBatch(input, labels); }

  std::vector<float> input;
  std::vector<uint8_t> labels;
};

absl::Status Keep(std::span<float>) {
  return absl::OkStatus();
}

// The counts were found by tracing the reference network.
TEST(DeepcamTest, HasTheReferencesParameters) {
  auto backend = MakeBackend("onednn");
  ASSERT_THAT(backend, IsOk());

  const auto model = MakeDeepcam({.batch = 1, .height = 16, .width = 16}, backend->get());

  ASSERT_THAT(model, IsOk());
  EXPECT_EQ((*model)->parameter_count(), 56'454'720);
  EXPECT_EQ((*model)->parameters().size(), 301U);
  EXPECT_EQ((*model)->buffers().size(), 2 * 76U);
  EXPECT_EQ((*model)->buffer_elements(), 97'760);
  EXPECT_EQ((*model)->output(), Shape({1, 16, 16, 3}));
  // Traced at 768 x 1152: 655.34 and, with backward, 1963.97 GFLOP. All of it goes with the area
  // but the convolution of the map's mean, from 2048 to 256 channels, which has its input's
  // gradient.
  constexpr double kMean = 2.0 * 2048 * 256, kAreas = 768.0 * 1152 / (16 * 16);
  const LayerFlops flops = (*model)->flops();
  EXPECT_NEAR(flops.forward, (655.34e9 - kMean) / kAreas + kMean, 0.005e9 / kAreas);
  EXPECT_NEAR(flops.forward + flops.backward, (1963.97e9 - 3 * kMean) / kAreas + 3 * kMean,
              0.005e9 / kAreas);
  std::map<std::string, int64_t> parts;
  for (const Parameter* parameter : (*model)->parameters())
    parts[parameter->name.substr(0, parameter->name.find('/'))] += parameter->shape.elements();
  EXPECT_EQ(parts["block1"], 52'800);
  EXPECT_EQ(parts["block2"], 203'904);
  EXPECT_EQ(parts["block3"], 1'452'480);
  EXPECT_EQ(parts["block4"], 1'613'976);
  EXPECT_EQ(parts["block20"], 3'097'376);
  EXPECT_EQ(parts["pyramid"], 15'535'104);
  EXPECT_EQ(parts["low_level"], 6'240);
  EXPECT_EQ(parts["decoder"], 3'134'976);
}

TEST(DeepcamTest, WeighsTheClassesByTheirRarity) {
  const std::vector<double> weights = DeepcamClassWeights();

  EXPECT_NEAR(weights[0], 1.001729912, 1e-9);
  EXPECT_NEAR(weights[1], 2.614611224, 1e-9);
  EXPECT_NEAR(weights[2], 1.716419748, 1e-9);
}

// Encoder and pyramid as He et al., the rest as PyTorch leaves it; see deepcam.h.
TEST(DeepcamTest, StartsAsTheReferenceDoes) {
  const auto model = MakeTrained(
      {.batch = 1, .height = 16, .width = 16, .base_filters = 8, .middle_blocks = 1}, "onednn");
  const std::map<std::string, double> deviations = {
      {"conv2/kernel", std::sqrt(2.0 / (8 * 9))},
      {"block4/conv1/depthwise/kernel", std::sqrt(2.0 / 9)},
      {"block4/conv1/pointwise/kernel", std::sqrt(2.0 / 182)},
      {"pyramid/dilation6/kernel", std::sqrt(2.0 / (512 * 9))},
      {"pyramid/fuse/kernel", 1 / std::sqrt(3.0 * 320)},
      {"pyramid/mean/kernel", 1 / std::sqrt(3.0 * 512)},
      {"decoder/deconv1a/kernel", 1 / std::sqrt(3.0 * 64 * 9)},
      {"decoder/last/kernel", 1 / std::sqrt(3.0 * 3 * 9)},
      {"conv2/norm/scale", 0},
      {"decoder/conv3/bias", 1 / std::sqrt(3.0 * 64)}};
  size_t found = 0;
  for (const Parameter* parameter : model->model().parameters()) {
    const auto row = deviations.find(parameter->name);
    if (row == deviations.end()) continue;
    ++found;
    double sum = 0, squares = 0;
    for (const float value : parameter->value.Span<float>())
      sum += double{value}, squares += double{value} * double{value};
    const double count = static_cast<double>(parameter->shape.elements()), mean = sum / count;
    const double deviation = std::sqrt(std::max(squares / count - mean * mean, 0.0));
    // Four standard errors of a deviation are about 2.8 / sqrt(count) of it.
    EXPECT_NEAR(deviation, row->second, row->second * 2.9 / std::sqrt(count)) << parameter->name;
  }
  EXPECT_EQ(found, deviations.size());
}

TEST(DeepcamTest, BackendsAgreeOnLossAndGradients) {
  const auto fast = MakeTrained(kSmall, "onednn"), oracle = MakeTrained(kSmall, "reference");
  const DeepcamBatch batch(kSmall);
  std::vector<float> gradients[2];
  const auto keep_in = [](std::vector<float>* to) {
    return [to](std::span<float> from) {
      to->assign(from.begin(), from.end());
      return absl::OkStatus();
    };
  };

  const auto fast_loss = fast->TrainStep(batch.view(), {}, 0, keep_in(&gradients[0]));
  const auto oracle_loss = oracle->TrainStep(batch.view(), {}, 0, keep_in(&gradients[1]));

  ASSERT_THAT(fast_loss, IsOk());
  ASSERT_THAT(oracle_loss, IsOk());
  EXPECT_NEAR(*fast_loss, *oracle_loss, 1e-4);
  double difference = 0, length = 0;
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    difference += std::pow(double{gradients[0][i]} - double{gradients[1][i]}, 2);
    length += std::pow(double{gradients[1][i]}, 2);
  }
  EXPECT_LT(std::sqrt(difference / length), 1e-3);
}

// One takes convolution and normalisation at once, the other one after the other; statistics are no
// longer what they begin with.
TEST(DeepcamTest, BackendsAgreeOnEvaluation) {
  const auto fast = MakeTrained(kSmall, "onednn"), oracle = MakeTrained(kSmall, "reference");
  const DeepcamBatch batch(kSmall), other(kSmall, 1);
  for (Trainable* model : {fast.get(), oracle.get()})
    for (uint64_t step = 0; step < 3; ++step)
      ASSERT_THAT(model->TrainStep(batch.view(), {.step = step}, 0, Keep), IsOk());

  const auto fast_sums = fast->EvalBatch(other.view());
  const auto oracle_sums = oracle->EvalBatch(other.view());

  ASSERT_THAT(fast_sums, IsOk());
  ASSERT_THAT(oracle_sums, IsOk());
  EXPECT_NEAR(fast_sums->loss, oracle_sums->loss, 1e-4 * oracle_sums->loss);
  float scale = 0;
  for (const float score : oracle->predictions())
    scale = std::max(scale, std::abs(score));
  EXPECT_THAT(fast->predictions(),
              ::testing::Pointwise(::testing::FloatNear(1e-4F * scale), oracle->predictions()));
}

// The trained model's own layers and those that keep nothing give the same answer.
TEST(DeepcamTest, TheModelForEvaluationAnswersAsTheTrainedOneAndBorrowsItsMemory) {
  auto backend = MakeBackend("onednn");
  ASSERT_THAT(backend, IsOk());
  const auto trained = MakeDeepcam(kSmall, backend->get());
  ASSERT_THAT(trained, IsOk());
  (*trained)->Initialize(7);
  const auto evaluation = MakeDeepcam(kSmall, backend->get(), trained->get());
  ASSERT_THAT(evaluation, IsOk());
  DeepcamBatch batch(kSmall);
  const Tensor input = {batch.input.data(), (*trained)->input(), DType::kFloat32};

  const Tensor own = (*trained)->Forward(input, {.is_training = false});
  const std::vector<float> expected(own.As<float>(), own.As<float>() + own.elements());
  const Tensor answer = (*evaluation)->Forward(input, {.is_training = false});

  EXPECT_THAT(answer.Span<float>(), ::testing::Pointwise(::testing::FloatEq(), expected));
  EXPECT_LT((*evaluation)->activation_bytes(), (*trained)->activation_bytes() / 20);
}

// The reference keeps about 1.06e9 numbers at 768 x 1152 between the passes; gradients of maps take
// the place of maps that are no longer read.
TEST(DeepcamTest, KeepsLittleMoreThanBackwardNeeds) {
  auto backend = MakeBackend("onednn");
  ASSERT_THAT(backend, IsOk());
  const auto model = MakeDeepcam({.batch = 1, .height = 96, .width = 144}, backend->get());
  ASSERT_THAT(model, IsOk());
  constexpr double kKept = 1.06e9 * sizeof(float) / 64;  // 64 times fewer pixels

  EXPECT_LT(static_cast<double>((*model)->activation_bytes()), 1.15 * kKept);
}

TEST(DeepcamTest, OverfitsOneBatchWithEachOptimizer) {
  using Kind = OptimizerOptions::Kind;
  const DeepcamBatch batch(kSmall);
  const struct {
    Kind kind;
    double rate;
  } rows[] = {{Kind::kAdam, 0.01}, {Kind::kAdamW, 0.01}, {Kind::kLamb, 0.01}};
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(OptimizerName(row.kind)));
    const auto model = MakeTrained(
        kSmall, "onednn", {.seed = 5, .optimizer = {.kind = row.kind, .weight_decay = 1e-4}});
    float first = 0, last = 0;
    for (uint64_t step = 0; step < 60; ++step) {
      const auto loss = model->TrainStep(batch.view(), {.step = step}, row.rate, Keep);
      ASSERT_THAT(loss, IsOk());
      last = *loss;
      if (step == 0) first = *loss;
    }
    const auto quality = model->TrainQuality();

    EXPECT_LT(last, first / 4);
    ASSERT_THAT(quality, IsOk());
    EXPECT_GT(*quality, 0.8);
  }
}

// The mean gradient of two half batches, one optimizer step.
TEST(DeepcamTest, AccumulationStepsOncePerGroupOfBatches) {
  const auto model = MakeTrained(kSmall, "onednn", {.seed = 5, .accumulation = 2});
  const DeepcamBatch first(kSmall, 1), second(kSmall, 2);
  std::vector<float> means;
  int reductions = 0;
  const auto keep = [&](std::span<float> gradients) {
    means.assign(gradients.begin(), gradients.end());
    ++reductions;
    return absl::OkStatus();
  };
  std::vector<std::vector<float>> singles;
  for (const DeepcamBatch* batch : {&first, &second}) {
    const auto alone = MakeTrained(kSmall, "onednn");
    EXPECT_THAT(alone->TrainStep(batch->view(), {}, 0,
                                 [&](std::span<float> gradients) {
                                   singles.emplace_back(gradients.begin(), gradients.end());
                                   return absl::OkStatus();
                                 }),
                IsOk());
  }

  const std::vector<float> before(model->parameters().begin(), model->parameters().end());
  EXPECT_THAT(model->TrainStep(first.view(), {}, 0.1, keep), IsOk());
  EXPECT_EQ(reductions, 0);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), model->parameters().begin()));
  EXPECT_THAT(model->TrainStep(second.view(), {}, 0.1, keep), IsOk());
  EXPECT_EQ(reductions, 1);
  for (size_t i = 0; i < means.size(); ++i)
    ASSERT_NEAR(means[i], (singles[0][i] + singles[1][i]) / 2, 1e-6) << i;
}

TEST(DeepcamTest, EvaluatesEachSampleByItself) {
  const auto model = MakeTrained(kSmall, "onednn");
  const DeepcamBatch batch(kSmall);
  const size_t inputs = batch.input.size() / 2, labels = batch.labels.size() / 2;

  const auto both = model->EvalBatch(batch.view());
  EvalSums parts;
  for (size_t sample = 0; sample < 2; ++sample) {
    const auto one =
        model->EvalBatch(MakeBatch(std::span(batch.input).subspan(sample * inputs, inputs),
                                   std::span(batch.labels).subspan(sample * labels, labels)));
    ASSERT_THAT(one, IsOk());
    parts += *one;
  }

  ASSERT_THAT(both, IsOk());
  EXPECT_NEAR(both->quality, parts.quality, 1e-6);
  EXPECT_NEAR(both->loss, parts.loss, 1e-5);
}

TEST(DeepcamTest, RefusesSpecsThatNameWhatIsWrong) {
  const struct {
    DeepcamSpec spec;
    const char* message;
  } rows[] = {{{.batch = 0}, "batch"},
              {{.height = 100}, "map_height"},
              {{.width = 8}, "map_width"},
              {{.base_filters = 0}, "base_filter_count"},
              {{.middle_blocks = -1}, "middle_block_count"}};
  for (const auto& row : rows)
    EXPECT_THAT(Validate(row.spec),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(row.message)));
}

}  // namespace
}  // namespace assay
