// Gradient skipping: what freezing the first layers does to training, against training that freezes
// nothing and has the weights of those layers put back after each step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/models/model_batch.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

using Kind = OptimizerOptions::Kind;

ModelSpec SmallCosmoflow() {
  return {.name = "cosmoflow",
          .cosmoflow = {.batch = 2, .cube_edge = 32, .base_filters = 2, .dropout = 0.5, .l2 = 0.01},
          .options = {.seed = 42}};
}

ModelSpec Deepcam(Kind kind) {
  return {.name = "deepcam",
          .deepcam = {.batch = 2, .height = 32, .width = 32, .base_filters = 4, .middle_blocks = 1},
          .options = {.seed = 5, .optimizer = {.kind = kind, .weight_decay = 0.01}}};
}

std::unique_ptr<Trainable> Make(const ModelSpec& spec) {
  auto backend = MakeBackend("onednn");
  EXPECT_THAT(backend, IsOk());
  auto model = MakeTrainable(spec, *std::move(backend));
  EXPECT_THAT(model, IsOk());
  return *std::move(model);
}

void Step(Trainable* model, uint64_t step, std::vector<size_t>* reduced = nullptr) {
  const ModelBatch batch(*model, static_cast<uint32_t>(step));
  const auto loss =
      model->TrainStep(batch.view(), {.epoch = 0, .step = step}, 0.01, [&](std::span<float> g) {
        if (reduced != nullptr) reduced->push_back(g.size());
        return absl::OkStatus();
      });
  ASSERT_THAT(loss, IsOk());
}

std::vector<float> Copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

// Elements of the parameters up to the last whose name begins with `layer`.
size_t ElementsThrough(const Trainable& model, const std::string& layer) {
  int64_t elements = 0, found = 0;
  for (const Parameter* parameter : model.model().parameters()) {
    elements += parameter->shape.elements();
    if (parameter->name.rfind(layer + "/", 0) == 0) found = elements;
  }
  return static_cast<size_t>(found);
}

struct FreezingCase {
  const char* name;
  ModelSpec spec;
  const char* layer;
};

class FreezingTest : public ::testing::TestWithParam<FreezingCase> {};

// Two free steps first, so that momentum and moments are there.
TEST_P(FreezingTest, TheOthersLearnAsIfTheFrozenHadARateOfZero) {
  const auto frozen = Make(GetParam().spec), oracle = Make(GetParam().spec);
  const size_t count = ElementsThrough(*frozen, GetParam().layer);
  const size_t all = frozen->parameters().size();
  ASSERT_GT(count, 0U);
  ASSERT_LT(count, all);
  for (uint64_t step = 0; step < 2; ++step) {
    Step(frozen.get(), step);
    Step(oracle.get(), step);
  }
  const std::vector<float> before = Copy(frozen->parameters());
  const std::vector<float> moments = Copy(frozen->optimizer_state());

  ASSERT_THAT(frozen->FreezeThrough(GetParam().layer), IsOk());
  std::vector<size_t> reduced;
  for (uint64_t step = 2; step < 4; ++step) {
    Step(frozen.get(), step, &reduced);
    Step(oracle.get(), step);
    std::copy_n(before.begin(), count, oracle->parameters().begin());
    oracle->ParametersChanged();
  }

  const std::vector<float> after = Copy(frozen->parameters());
  EXPECT_EQ(after, Copy(oracle->parameters()));
  EXPECT_TRUE(
      std::equal(before.begin(), before.begin() + static_cast<ptrdiff_t>(count), after.begin()));
  for (const Parameter* parameter : frozen->model().parameters()) {
    const size_t at =
        static_cast<size_t>(parameter->value.As<float>() - frozen->parameters().data());
    const auto size = static_cast<size_t>(parameter->shape.elements());
    EXPECT_EQ(parameter->is_frozen, at < count) << parameter->name;
    if (parameter->is_frozen) continue;
    EXPECT_FALSE(std::equal(&before[at], &before[at] + size, &after[at])) << parameter->name;
  }
  EXPECT_THAT(reduced, AllOf(::testing::SizeIs(2 / GetParam().spec.options.accumulation),
                             Each(all - count)));
  EXPECT_TRUE(std::equal(moments.begin(), moments.begin() + static_cast<ptrdiff_t>(count),
                         frozen->optimizer_state().begin()));
  EXPECT_EQ(Copy(frozen->buffers()), Copy(oracle->buffers())) << "running statistics go on";
}

// Gradients of frozen parameters are not computed: what lay there still does.
TEST_P(FreezingTest, BackwardEndsBeforeTheFrozenLayers) {
  const auto model = Make(GetParam().spec);
  const size_t count = ElementsThrough(*model, GetParam().layer);
  ASSERT_THAT(model->FreezeThrough(GetParam().layer), IsOk());
  const std::span<float> gradients = model->model().flat_gradients().Span<float>();
  std::fill(gradients.begin(), gradients.end(), 77.0F);

  Step(model.get(), 0);

  EXPECT_THAT(Copy(gradients.first(count)), Each(77.0F));
  EXPECT_EQ(std::count(gradients.begin() + static_cast<ptrdiff_t>(count), gradients.end(), 77.0F),
            0);
}

ModelSpec WithoutClipping(ModelSpec spec) {
  spec.options.optimizer.max_grad_norm = 0;  // it would look at all gradients, or at some
  return spec;
}

ModelSpec Accumulating(ModelSpec spec) {
  spec.options.accumulation = 2;
  return spec;
}

INSTANTIATE_TEST_SUITE_P(
    Models, FreezingTest,
    ::testing::Values(
        FreezingCase{"CosmoflowFirstBlock", SmallCosmoflow(), "conv1"},
        FreezingCase{"CosmoflowConvolutions", SmallCosmoflow(), "conv5"},
        FreezingCase{"CosmoflowButTheLast", SmallCosmoflow(), "fc2"},
        FreezingCase{"CosmoflowAccumulating", Accumulating(SmallCosmoflow()), "conv3"},
        FreezingCase{"DeepcamBeforeTheBranches", Deepcam(Kind::kAdam), "block1"},
        FreezingCase{"DeepcamInsideOfABlock", Deepcam(Kind::kAdamW), "block2/conv2"},
        FreezingCase{"DeepcamPyramid", WithoutClipping(Deepcam(Kind::kLamb)), "pyramid"},
        FreezingCase{"DeepcamBothBranches", Deepcam(Kind::kAdam), "low_level"}),
    [](const auto& test) { return std::string(test.param.name); });

// LAMB's clipping looks at the gradients that there are, not at what lies in the others' place.
TEST(FreezeTest, ClippingLeavesTheFrozenOut) {
  const ModelSpec spec = Deepcam(Kind::kLamb);
  const auto frozen = Make(spec), other = Make(spec);
  for (Trainable* model : {frozen.get(), other.get()})
    ASSERT_THAT(model->FreezeThrough("pyramid"), IsOk());
  const size_t count = ElementsThrough(*other, "pyramid");
  const std::span<float> gradients = other->model().flat_gradients().Span<float>();
  std::fill_n(gradients.begin(), count, 1e6F);

  Step(frozen.get(), 0);
  Step(other.get(), 0);

  EXPECT_EQ(Copy(frozen->parameters()), Copy(other->parameters()));
}

TEST(FreezeTest, FreezingAgainOrFurtherInFrontIsNothing) {
  const auto once = Make(SmallCosmoflow()), twice = Make(SmallCosmoflow());
  ASSERT_THAT(once->FreezeThrough("conv3"), IsOk());
  for (const char* layer : {"conv3", "conv3", "conv2"})
    ASSERT_THAT(twice->FreezeThrough(layer), IsOk());

  Step(once.get(), 0);
  Step(twice.get(), 0);

  EXPECT_EQ(once->model().frozen_elements(), twice->model().frozen_elements());
  EXPECT_EQ(Copy(once->parameters()), Copy(twice->parameters()));
}

TEST(FreezeTest, NamesTheLayersWhereThereIsNone) {
  const auto model = Make(SmallCosmoflow());

  EXPECT_THAT(model->FreezeThrough("conv9"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no layer \"conv9\"; the layers are conv1, conv2, conv3, conv4, "
                                 "conv5, fc1, fc2, fc3")));
  EXPECT_THAT(model->FreezeThrough("conv"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(model->FreezeThrough("fc3"), StatusIs(absl::StatusCode::kInvalidArgument,
                                                    HasSubstr("nothing would be left to train")));
  EXPECT_EQ(model->model().frozen_elements(), 0);
}

}  // namespace
}  // namespace assay
