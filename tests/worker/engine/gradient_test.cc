// Gradients of every layer against central differences, in double (layer_harness.h).

#include <gtest/gtest.h>

#include <memory>

#include "tests/worker/engine/layer_harness.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/layers.h"

namespace assay {
namespace {

constexpr double kStep = LayerHarness::kStep;
constexpr double kGradientTolerance = LayerHarness::kTolerance;

class GradientTest : public ::testing::Test {
 protected:
  ReferenceBackend<double> backend_;
};

TEST_F(GradientTest, ConvPoolMatchesDifferences) {
  const Shape input = {2, 4, 4, 2, 2};
  for (const int64_t kernel : {2, 3}) {
    SCOPED_TRACE(kernel);
    const ConvPoolLayer::Options options = {.name = "conv", .kernel = kernel, .filters = 3};
    LayerHarness harness(&backend_, std::make_unique<ConvPoolLayer>(&backend_, input, options),
                         input);

    harness.ExpectGradientsMatchDifferences();
  }
}

TEST_F(GradientTest, DenseMatchesDifferences) {
  const Shape input = {3, 2, 1, 1, 4};
  const Activation leaky = {Activation::Kind::kLeakyRelu, 0.3};
  const Activation tanh = {Activation::Kind::kScaledTanh, 1.2};
  const DenseLayer::Options rows[] = {
      {.name = "leaky", .units = 5, .activation = leaky},
      {.name = "tanh", .units = 5, .activation = tanh},
      {.name = "leaky and dropout", .units = 6, .activation = leaky, .dropout = 0.5}};

  for (const DenseLayer::Options& options : rows) {
    SCOPED_TRACE(options.name);
    LayerHarness harness(&backend_, std::make_unique<DenseLayer>(&backend_, input, options), input);

    harness.ExpectGradientsMatchDifferences();
  }
}

TEST_F(GradientTest, SquaredErrorMatchesDifferences) {
  Doubles prediction = Doubles::Random({3, 4}, 1), target = Doubles::Random({3, 4}, 2);
  Doubles gradient(target.shape), unused(target.shape), loss({1});
  backend_.SquaredError(prediction.view(), target.view(), gradient.view(), loss.view());

  for (size_t i = 0; i < prediction.values.size(); ++i) {
    const auto loss_at = [&](double value) {
      Doubles moved = prediction;
      moved.values[i] = value;
      backend_.SquaredError(moved.view(), target.view(), unused.view(), loss.view());
      return loss.values[0];
    };
    const double value = prediction.values[i];
    const double difference = (loss_at(value + kStep) - loss_at(value - kStep)) / (2 * kStep);
    EXPECT_NEAR(gradient.values[i], difference, kGradientTolerance) << "element " << i;
  }
}

}  // namespace
}  // namespace assay
