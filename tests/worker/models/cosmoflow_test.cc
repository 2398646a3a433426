// CosmoFlow's shape, initial weights and whole-model numerics.

#include "worker/models/cosmoflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

std::unique_ptr<Trainable> MakeModel(const CosmoflowSpec& spec, absl::string_view backend,
                                     uint64_t seed = 1) {
  auto made = MakeBackend(backend);
  EXPECT_THAT(made, IsOk());
  auto model = MakeTrainable({.cosmoflow = spec, .options = {.seed = seed}}, *std::move(made));
  EXPECT_THAT(model, IsOk());
  return *std::move(model);
}

struct CosmoflowBatch {
  std::vector<int16_t> voxels;
  std::vector<float> targets;
  Batch view() const { return MakeBatch(voxels, targets); }
};

// Counts with a mean of 0.5 and many zeros, as voids in the real data; targets U(-1, 1).
CosmoflowBatch RandomBatch(const Trainable& model, uint32_t salt) {
  const Stream stream(11, Purpose::kTest, salt);
  CosmoflowBatch batch;
  batch.voxels.resize(static_cast<size_t>(model.batch_size() * model.input_elements()));
  batch.targets.resize(static_cast<size_t>(model.batch_size() * model.outputs()));
  for (size_t i = 0; i < batch.voxels.size(); ++i) {
    const float u = stream.Uniform(i);
    batch.voxels[i] = static_cast<int16_t>(4 * u * u * u * u);
  }
  for (size_t i = 0; i < batch.targets.size(); ++i)
    batch.targets[i] = 2 * stream.Uniform(batch.voxels.size() + i) - 1;
  return batch;
}

absl::Status KeepGradients(std::span<float>) {
  return absl::OkStatus();
}

TEST(CosmoflowTest, HasThePublishedNumberOfParameters) {
  const struct {
    CosmoflowSpec spec;
    int64_t parameters;
  } rows[] = {{{.batch = 1, .cube_edge = 128, .kernel = 3}, 8'907'556},
              {{.batch = 1, .cube_edge = 128, .kernel = 2}, 5'597'604},
              {{.batch = 1, .cube_edge = 64, .kernel = 3}, 5'237'540},
              {{.batch = 1, .cube_edge = 32, .kernel = 3}, 4'778'788}};

  for (const auto& row : rows) {
    auto backend = MakeBackend("reference");
    ASSERT_THAT(backend, IsOk());
    const auto model = MakeCosmoflow(row.spec, backend->get());
    ASSERT_THAT(model, IsOk());
    EXPECT_EQ((*model)->parameter_count(), row.parameters);
    EXPECT_EQ((*model)->flat_gradients().elements(), row.parameters);
  }
}

// Counted layer by layer from the reference network, in GFLOP a sample; to the digits given.
TEST(CosmoflowTest, CostsWhatTheReferenceNetworkCosts) {
  const struct {
    CosmoflowSpec spec;
    double forward, training, tolerance;
  } rows[] = {{{.batch = 1, .cube_edge = 64, .kernel = 3}, 8.608, 24.011, 0.0005},
              {{.batch = 1, .cube_edge = 32, .kernel = 3}, 1.076, 3.0015, 0.0005},
              {{.batch = 2, .cube_edge = 32, .kernel = 3}, 2 * 1.076, 2 * 3.0015, 0.001},
              {{.batch = 1, .cube_edge = 128, .kernel = 2}, 20.410, 56.93, 0.005}};

  for (const auto& row : rows) {
    auto backend = MakeBackend("onednn");
    ASSERT_THAT(backend, IsOk());
    const auto model = MakeCosmoflow(row.spec, backend->get());
    ASSERT_THAT(model, IsOk());
    const LayerFlops flops = (*model)->flops();
    EXPECT_NEAR(flops.forward / 1e9, row.forward, row.tolerance);
    EXPECT_NEAR((flops.forward + flops.backward) / 1e9, row.training, row.tolerance);
  }
}

// Floors of a training step's traffic with 24 bytes per parameter for SGD, counted elsewhere: with
// everything fused, and operation by operation. Layers lie between the two.
TEST(CosmoflowTest, TrafficLiesBetweenFusedAndOperationByOperation) {
  const struct {
    CosmoflowSpec spec;
    double fused_mb, unfused_mb;
  } rows[] = {{{.batch = 1, .cube_edge = 64}, 160.6, 626.4},
              {{.batch = 8, .cube_edge = 32}, 149.6, 615.4},
              {{.batch = 4, .cube_edge = 64}, 265.3, 2128.4}};

  for (const auto& row : rows) {
    auto backend = MakeBackend("onednn");
    ASSERT_THAT(backend, IsOk());
    const auto model = MakeCosmoflow(row.spec, backend->get());
    ASSERT_THAT(model, IsOk());
    const LayerTraffic bytes = (*model)->traffic_bytes();
    const double sgd = 24 * static_cast<double>((*model)->parameter_count());
    EXPECT_GT((bytes.forward + bytes.backward + sgd) / 1e6, row.fused_mb);
    EXPECT_LT((bytes.forward + bytes.backward + sgd) / 1e6, row.unfused_mb);
  }
}

TEST(CosmoflowTest, FrozenLayersCostNoBackward) {
  auto backend = MakeBackend("onednn");
  ASSERT_THAT(backend, IsOk());
  const auto model = MakeCosmoflow({.batch = 3, .cube_edge = 32}, backend->get());
  ASSERT_THAT(model, IsOk());
  const double forward = (*model)->flops().forward;

  ASSERT_THAT((*model)->FreezeThrough("fc2"), IsOk());

  // What is left: the gradient of fc3's kernel, 64 x 4, with two operations for each sample.
  EXPECT_EQ((*model)->flops().backward, 2.0 * 64 * 4 * 3);
  EXPECT_EQ((*model)->flops().forward, forward);
  // It reads its input, its result's gradient, and writes its own: kernel and bias.
  EXPECT_EQ((*model)->traffic_bytes().backward, 4.0 * (64 * 3 + 4 * 3 + 64 * 4 + 4));
}

TEST(CosmoflowTest, DrawsKernelsFromGlorotsRangeAndLeavesBiasesZero) {
  const auto model = MakeModel({.batch = 1, .cube_edge = 32}, "reference");
  const struct {
    const char* name;
    double limit;
  } rows[] = {{"conv1/kernel", 0.078567}, {"conv2/kernel", 0.048113}, {"conv3/kernel", 0.034021},
              {"conv4/kernel", 0.024056}, {"conv5/kernel", 0.017010}, {"fc1/kernel", 0.096825},
              {"fc2/kernel", 0.176777},   {"fc3/kernel", 0.297044}};

  size_t found = 0;
  for (const Parameter* parameter : model->model().parameters()) {
    const std::span<float> values = parameter->value.Span<float>();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const auto* row = std::find_if(std::begin(rows), std::end(rows),
                                   [&](const auto& r) { return parameter->name == r.name; });
    if (row == std::end(rows)) {
      EXPECT_EQ(*low, 0) << parameter->name;
      EXPECT_EQ(*high, 0) << parameter->name;
      continue;
    }
    ++found;
    EXPECT_NEAR(parameter->init_limit, row->limit, 1e-6) << row->name;
    EXPECT_GE(*low, -row->limit - 1e-6) << row->name;
    EXPECT_LE(*high, row->limit + 1e-6) << row->name;
    // The smallest kernel has 256 values: the extremes are close to the limits.
    EXPECT_LT(*low, -0.9 * row->limit) << row->name;
    EXPECT_GT(*high, 0.9 * row->limit) << row->name;
  }
  EXPECT_EQ(found, std::size(rows));
}

TEST(CosmoflowTest, RefusesBadSpecsAndNamesTheField) {
  const struct {
    const char* field;
    CosmoflowSpec spec;
  } rows[] = {{"batch", {.batch = 0}},
              {"cube_edge", {.cube_edge = 16}},
              {"cube_edge", {.cube_edge = 100}},
              {"kernel", {.kernel = 4}},
              {"base_filters", {.base_filters = 0}},
              {"dropout", {.dropout = 1}},
              {"dropout", {.dropout = std::nan("")}},
              {"l2", {.l2 = -1}}};

  for (const auto& row : rows)
    EXPECT_THAT(Validate(row.spec),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(row.field)));
}

// Loss and gradients of one step of a whole model. Gradients are compared per parameter tensor,
// relative to the tensor's largest value. 3e-3: a float difference of 1e-6 in an activation may
// move a maximum of a pooling window to an equally good neighbour, which moves one term of a sum.
TEST(CosmoflowTest, BackendsAgreeOnLossAndGradients) {
  for (const int64_t kernel : {2, 3}) {
    SCOPED_TRACE(kernel);
    const CosmoflowSpec spec = {
        .batch = 2, .cube_edge = 32, .kernel = kernel, .base_filters = 8, .l2 = 0.01};
    const auto fast = MakeModel(spec, "onednn");
    const auto oracle = MakeModel(spec, "reference");
    const CosmoflowBatch batch = RandomBatch(*fast, 1);
    std::vector<float> fast_gradients, oracle_gradients;
    const auto keep_in = [](std::vector<float>* copy) {
      return [copy](std::span<float> gradients) {
        copy->assign(gradients.begin(), gradients.end());
        return absl::OkStatus();
      };
    };

    const auto fast_loss = fast->TrainStep(batch.view(), {}, 1e-3, keep_in(&fast_gradients));
    const auto oracle_loss = oracle->TrainStep(batch.view(), {}, 1e-3, keep_in(&oracle_gradients));

    ASSERT_THAT(fast_loss, IsOk());
    ASSERT_THAT(oracle_loss, IsOk());
    EXPECT_NEAR(*fast_loss, *oracle_loss, 1e-5 * *oracle_loss);
    size_t offset = 0;
    for (const Parameter* parameter : oracle->model().parameters()) {
      double scale = 0, difference = 0;
      for (const size_t end = offset + static_cast<size_t>(parameter->shape.elements());
           offset < end; ++offset) {
        const double expected = oracle_gradients[offset];
        scale = std::max(scale, std::abs(expected));
        difference = std::max(difference, std::abs(double{fast_gradients[offset]} - expected));
      }
      EXPECT_GT(scale, 0) << parameter->name;
      EXPECT_LE(difference, 3e-3 * scale) << parameter->name;
    }
  }
}

TEST(CosmoflowTest, StartsWithTheLossOfAGuess) {
  // Targets are U(-1, 1): predicting about zero costs E[y^2] = 1/3 and an absolute error of 1/2.
  const auto model =
      MakeModel({.batch = 64, .cube_edge = 32, .base_filters = 8, .dropout = 0}, "onednn");
  const CosmoflowBatch batch = RandomBatch(*model, 2);

  const auto error = model->EvalBatch(batch.view());
  const auto loss = model->TrainStep(batch.view(), {}, 0, KeepGradients);

  // 256 targets: five standard errors are 0.093 and 0.09; the untrained outputs add their variance.
  ASSERT_THAT(loss, IsOk());
  EXPECT_NEAR(*loss, 1.0 / 3, 0.15);
  ASSERT_THAT(error, IsOk());
  EXPECT_NEAR(error->quality / 256, 0.5, 0.1);
  EXPECT_NEAR(error->loss / 64, *loss, 1e-5);
}

TEST(CosmoflowTest, AddsTheL2TermOfTheTwoHiddenDenseKernelsOnly) {
  const CosmoflowSpec plain = {.batch = 1, .cube_edge = 32, .base_filters = 8};
  CosmoflowSpec decayed = plain;
  decayed.l2 = 0.5;
  const auto without = MakeModel(plain, "onednn"), with = MakeModel(decayed, "onednn");
  const CosmoflowBatch batch = RandomBatch(*without, 3);
  double squares = 0;
  for (const Parameter* parameter : with->model().parameters())
    if (parameter->name == "fc1/kernel" || parameter->name == "fc2/kernel")
      for (const float w : parameter->value.Span<float>())
        squares += double{w} * w;

  const auto loss_without = without->TrainStep(batch.view(), {}, 0, KeepGradients);
  const auto loss_with = with->TrainStep(batch.view(), {}, 0, KeepGradients);

  ASSERT_THAT(loss_without, IsOk());
  ASSERT_THAT(loss_with, IsOk());
  EXPECT_NEAR(*loss_with - *loss_without, 0.5 * squares, 1e-5 * squares);
}

}  // namespace
}  // namespace assay
