// Gradients of the layers on maps against central differences, in double (layer_harness.h).

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/engine/layer_harness.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/branch_layer.h"
#include "worker/engine/map_layers.h"
#include "worker/engine/maps.h"

namespace assay {
namespace {

class MapGradientTest : public ::testing::Test {
 protected:
  void Expect(std::unique_ptr<Layer> layer, const Shape& input) {
    LayerHarness harness(&backend_, std::move(layer), input);
    harness.ExpectGradientsMatchDifferences();
  }

  std::unique_ptr<Layer> Conv(const Shape& input, const Conv2dLayer::Options& options) {
    return std::make_unique<Conv2dLayer>(&backend_, input, options);
  }

  std::unique_ptr<Layer> Norm(const Shape& input, bool relu) {
    return std::make_unique<BatchNormLayer>(&backend_, input,
                                            BatchNormLayer::Options{.name = "norm", .relu = relu});
  }

  ReferenceBackend<double> backend_;
};

TEST_F(MapGradientTest, ConvolutionsMatchDifferences) {
  const Shape input = {2, 5, 6, 4};
  const Conv2dLayer::Options rows[] = {
      {.name = "dense", .filters = 3},
      {.name = "strided", .filters = 3, .stride = 2},
      {.name = "dilated beyond the map", .filters = 2, .dilation = 6},
      {.name = "pointwise", .filters = 5, .kernel = 1},
      {.name = "strided pointwise", .filters = 5, .kernel = 1, .stride = 2},
      {.name = "depthwise", .filters = 4, .dilation = 2, .groups = 4},
      {.name = "strided depthwise", .filters = 4, .stride = 2, .groups = 4},
      {.name = "grouped", .filters = 6, .groups = 2}};

  for (const Conv2dLayer::Options& options : rows) {
    SCOPED_TRACE(options.name);
    Expect(Conv(input, options), input);
  }
}

TEST_F(MapGradientTest, TransposedConvolutionMatchesDifferences) {
  const Shape input = {2, 3, 2, 3};

  Expect(std::make_unique<Deconv2dLayer>(&backend_, input, "deconv", 2), input);
}

TEST_F(MapGradientTest, BatchNormMatchesDifferences) {
  const Shape input = {3, 2, 3, 4};
  for (const bool relu : {false, true}) {
    SCOPED_TRACE(relu);
    Expect(Norm(input, relu), input);
  }
}

TEST_F(MapGradientTest, AffineAndGlobalMeanAndSpreadMatchDifferences) {
  const Shape map = {2, 3, 4, 3}, point = {2, 1, 1, 3};

  Expect(std::make_unique<AffineReluLayer>(&backend_, point, "affine"), point);
  Expect(std::make_unique<GlobalMeanLayer>(&backend_, map), map);
  Expect(std::make_unique<SpreadLayer>(&backend_, point, 3, 4), point);
}

// A bias works in place, so it stands behind a layer that owns its result.
TEST_F(MapGradientTest, BiasMatchesDifferences) {
  const Shape input = {2, 2, 3, 3};
  auto sequence = std::make_unique<SequenceLayer>(input);
  sequence->Add(Conv(input, {.name = "conv", .filters = 4, .kernel = 1}));
  sequence->Add(std::make_unique<BiasLayer>(&backend_, sequence->output(), "conv", 3));

  Expect(std::move(sequence), input);
}

std::vector<std::unique_ptr<SequenceLayer>> Pair(std::unique_ptr<SequenceLayer> first,
                                                 std::unique_ptr<SequenceLayer> second) {
  std::vector<std::unique_ptr<SequenceLayer>> branches;
  branches.push_back(std::move(first));
  branches.push_back(std::move(second));
  return branches;
}

TEST_F(MapGradientTest, BranchesMatchDifferences) {
  const Shape input = {2, 3, 2, 4};
  for (const BranchLayer::Join join : {BranchLayer::Join::kSum, BranchLayer::Join::kConcat}) {
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(::testing::Message() << (join == BranchLayer::Join::kSum) << relu);
      auto main = std::make_unique<SequenceLayer>(input);
      main->Add(Conv(input, {.name = "conv", .filters = 4}));
      main->Add(Norm(input, true));
      auto skip = std::make_unique<SequenceLayer>(input);

      Expect(std::make_unique<BranchLayer>(&backend_, input, join, relu,
                                           Pair(std::move(main), std::move(skip))),
             input);
    }
  }
}

TEST_F(MapGradientTest, TwoBranchesThatOverwriteTheirGradientsDoNotDisturbEachOther) {
  const Shape input = {2, 4, 2, 2};
  const auto branch = [&](const std::string& name) {
    auto sequence = std::make_unique<SequenceLayer>(input);
    sequence->Add(Conv(input, {.name = name, .filters = 3, .stride = 2}));
    sequence->Add(Norm(sequence->output(), true));
    return sequence;
  };

  Expect(std::make_unique<BranchLayer>(&backend_, input, BranchLayer::Join::kSum, true,
                                       Pair(branch("a"), branch("b"))),
         input);
}

TEST_F(MapGradientTest, CrossEntropyMatchesDifferences) {
  Doubles logits = Doubles::Random({2, 2, 3, 3}, 1);
  HostTensor<uint8_t> labels({2, 2, 3}, {0, 1, 2, 2, 1, 0, 1, 1, 0, 2, 0, 0});
  Doubles weights({3}, {1.0, 2.5, 1.7}), gradient(logits.shape), unused(logits.shape), loss({1});
  const auto loss_of = [&](Doubles& scores, Doubles& slope) {
    backend_.maps()->SoftmaxCrossEntropy(scores.view(), labels.view(), weights.view(), slope.view(),
                                         loss.view());
    return loss.values[0];
  };
  loss_of(logits, gradient);

  for (size_t i = 0; i < logits.values.size(); ++i) {
    Doubles above = logits, below = logits;
    above.values[i] += LayerHarness::kStep;
    below.values[i] -= LayerHarness::kStep;
    const double slope =
        (loss_of(above, unused) - loss_of(below, unused)) / (2 * LayerHarness::kStep);
    EXPECT_NEAR(gradient.values[i], slope, 1e-8) << "element " << i;
  }
}

}  // namespace
}  // namespace assay
