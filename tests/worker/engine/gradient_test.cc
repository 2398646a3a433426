// Gradients of every layer against central differences, in double.
//
// Each layer is asked for the gradient of L = sum of r * y with random r. The step is small enough
// that no activation crosses its kink with these seeds, and large enough for 1e-7 of accuracy.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/host_tensor.h"
#include "worker/engine/arena.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/layers.h"

namespace assay {
namespace {

using testing::IsOk;

using Doubles = HostTensor<double>;

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-7;  // per O(1) value

// A layer with memory, random parameters and a random input.
class LayerHarness {
 public:
  LayerHarness(Backend* backend, std::unique_ptr<Layer> layer, const Shape& input)
      : layer_(std::move(layer)),
        arena_(backend, 64),
        x_(Doubles::Random(input, 1)),
        weights_(Doubles::Random(layer_->output(), 2)) {
    size_t scratch_bytes = 1;
    EXPECT_THAT(layer_->Plan({&arena_, &scratch_bytes}, true), IsOk());
    for (Parameter* parameter : layer_->parameters()) {
      arena_.Reserve(parameter->shape, backend->real(), &parameter->value);
      arena_.Reserve(parameter->shape, backend->real(), &parameter->gradient);
    }
    EXPECT_THAT(arena_.Commit(), IsOk());
    scratch_.resize(scratch_bytes);
    pass_ = {.is_training = true, .step = 3, .scratch = scratch_.data()};
    uint32_t salt = 3;
    for (Parameter* parameter : layer_->parameters()) {
      const Doubles values = Doubles::Random(parameter->shape, salt++);
      backend->CopyIn(values.values.data(), parameter->value);
    }
  }

  double Loss() {
    layer_->ParametersChanged();
    const Tensor y = layer_->Forward(x_.view(), pass_);
    double loss = 0;
    for (size_t i = 0; i < weights_.values.size(); ++i)
      loss += weights_.values[i] * y.As<double>()[i];
    return loss;
  }

  void ExpectGradientsMatchDifferences() {
    Loss();
    Doubles dy = weights_;
    const Tensor dx = layer_->Backward(x_.view(), dy.view(), pass_);
    const std::span<double> dx_span = dx.Span<double>();
    const std::vector<double> gradient(dx_span.begin(), dx_span.end());
    ExpectMatch("input", x_.values, gradient);
    for (Parameter* parameter : layer_->parameters())
      ExpectMatch(parameter->name, parameter->value.Span<double>(),
                  parameter->gradient.Span<double>());
  }

 private:
  void ExpectMatch(const std::string& what, std::span<double> values,
                   std::span<const double> gradient) {
    ASSERT_EQ(values.size(), gradient.size()) << what;
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      values[i] = value + kStep;
      const double above = Loss();
      values[i] = value - kStep;
      const double below = Loss();
      values[i] = value;
      ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), kTolerance)
          << what << " element " << i;
    }
  }

  std::unique_ptr<Layer> layer_;
  Arena arena_;
  Doubles x_;
  Doubles weights_;  // r
  std::vector<double> scratch_;
  Pass pass_;
};

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
    EXPECT_NEAR(gradient.values[i], difference, kTolerance) << "element " << i;
  }
}

}  // namespace
}  // namespace assay
