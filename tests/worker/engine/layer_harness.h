// A layer by itself, for gradient checks: with memory, random parameters and a random input.

#ifndef TESTS_WORKER_ENGINE_LAYER_HARNESS_H_
#define TESTS_WORKER_ENGINE_LAYER_HARNESS_H_

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/host_tensor.h"
#include "worker/engine/arena.h"
#include "worker/engine/backend.h"
#include "worker/engine/layer.h"

namespace assay {

using Doubles = HostTensor<double>;

// Compares gradients with central differences of L = sum of r * y with random r. The step is small
// enough that no activation crosses its kink with the tests' seeds, and large enough for 1e-7 of
// accuracy.
class LayerHarness {
 public:
  static constexpr double kStep = 1e-5;
  static constexpr double kTolerance = 1e-7;  // per O(1) value

  LayerHarness(Backend* backend, std::unique_ptr<Layer> layer, const Shape& input)
      : layer_(std::move(layer)),
        arena_(backend, 64),
        x_(Doubles::Random(input, 1)),
        weights_(Doubles::Random(layer_->output(), 2)) {
    size_t scratch_bytes = 1;
    EXPECT_THAT(layer_->Plan({&arena_, &scratch_bytes}, true), testing::IsOk());
    for (Parameter* parameter : layer_->parameters()) {
      arena_.Reserve(parameter->shape, backend->real(), &parameter->value);
      arena_.Reserve(parameter->shape, backend->real(), &parameter->gradient);
    }
    for (Buffer* buffer : layer_->buffers())
      arena_.Reserve(buffer->shape, backend->real(), &buffer->value);
    EXPECT_THAT(arena_.Commit(), testing::IsOk());
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

}  // namespace assay

#endif  // TESTS_WORKER_ENGINE_LAYER_HARNESS_H_
