// The whole network against PyTorch, forward, backward and ten LAMB steps: in double at a narrow
// width, in float at the reference's.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/golden.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/maps.h"
#include "worker/engine/optimizer.h"
#include "worker/models/deepcam.h"

namespace assay {
namespace {

using testing::IsOk;

// What the parameters begin with: see Net in make_golden.py.
struct Draw {
  double scale, offset;
};

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Draw DrawOf(const Parameter& parameter) {
  if (EndsWith(parameter.name, "/scale") || EndsWith(parameter.name, "/weight")) return {0.1, 1};
  if (!EndsWith(parameter.name, "/kernel")) return {0.1, 0};
  const Shape& shape = parameter.shape;
  const bool is_deconv =
      parameter.name.find("deconv") != std::string::npos || EndsWith(parameter.name, "last/kernel");
  const double fan = is_deconv ? static_cast<double>(shape[3]) * 9 / 4
                               : static_cast<double>(shape[0] * shape[1] * shape[2]);
  return {std::sqrt(6 / fan), 0};
}

template <typename T>
class GoldenRun {
 public:
  GoldenRun(Backend* backend, const GoldenCase& golden) : backend_(backend), golden_(golden) {
    const std::vector<double> d = golden.Numbers("shape");
    spec_ = {.batch = static_cast<int64_t>(d[0]),
             .height = static_cast<int64_t>(d[1]),
             .width = static_cast<int64_t>(d[2]),
             .base_filters = golden.Integer("base_filters"),
             .middle_blocks = golden.Integer("middle_blocks")};
    auto model = MakeDeepcam(spec_, backend);
    EXPECT_THAT(model, IsOk());
    model_ = *std::move(model);
    SetParameters();
  }

  // Compares what one pass leaves; returns the loss.
  double Pass(bool is_first, double tolerance) {
    HostTensor<T> x = GoldenTensor<T>(1, model_->input(), 0.5, 0.5);
    const Shape scores = model_->output();
    HostTensor<uint8_t> labels({scores[0], scores[1], scores[2]});
    for (size_t i = 0; i < labels.values.size(); ++i) {
      const double u = GoldenNoise(2, i);
      labels.values[i] = u < 0 ? 0 : u < 0.5 ? 1 : 2;
    }
    const std::vector<double> wide = DeepcamClassWeights();
    HostTensor<T> weights({3}, std::vector<T>(wide.begin(), wide.end()));
    HostTensor<T> gradient(scores), loss({1});
    const Tensor logits = model_->Forward(x.view(), {.is_training = true});
    backend_->maps()->SoftmaxCrossEntropy(logits, labels.view(), weights.view(), gradient.view(),
                                          loss.view());
    model_->Backward(gradient.view(), {.is_training = true});
    if (is_first) ExpectFirstPass(logits, tolerance);
    return double{loss.values[0]};
  }

  Model* model() { return model_.get(); }

 private:
  void SetParameters() {
    std::map<std::string, uint32_t> order;
    for (const JsonValue& name : *golden_["names"].AsList())
      order.emplace(*name.AsString(), static_cast<uint32_t>(order.size()));
    EXPECT_EQ(order.size(), model_->parameters().size());
    for (const Parameter* parameter : model_->parameters()) {
      ASSERT_TRUE(order.contains(parameter->name)) << parameter->name;
      const Draw draw = DrawOf(*parameter);
      const HostTensor<T> values =
          GoldenTensor<T>(1000 + order[parameter->name], parameter->shape, draw.scale, draw.offset);
      backend_->CopyIn(values.values.data(), parameter->value);
    }
    order_ = order;
    model_->ParametersChanged();
  }

  void ExpectFirstPass(const Tensor& logits, double tolerance) {
    const std::vector<double> sampled = golden_.Numbers("logits");
    size_t next = 0;
    for (int64_t h = 0; h < spec_.height; h += 8)
      for (int64_t w = 0; w < spec_.width; w += 8)
        for (int64_t c = 0; c < kDeepcamClasses; ++c)
          EXPECT_NEAR(double{logits.As<T>()[(h * spec_.width + w) * kDeepcamClasses + c]},
                      sampled.at(next++), 10 * tolerance);
    const std::vector<double> norms = golden_.Numbers("gradient_norms");
    for (const Parameter* parameter : model_->parameters()) {
      double squares = 0;
      for (const T value : parameter->gradient.template Span<T>())
        squares += double{value} * double{value};
      const double expected = norms.at(order_[parameter->name]);
      EXPECT_NEAR(std::sqrt(squares), expected, tolerance * (10 * expected + 1)) << parameter->name;
    }
  }

  Backend* const backend_;
  const GoldenCase& golden_;
  DeepcamSpec spec_;
  std::unique_ptr<Model> model_;
  std::map<std::string, uint32_t> order_;
};

TEST(DeepcamGoldenTest, TrainsAsPyTorchInDouble) {
  const GoldenFile file("models.json");
  const GoldenCase golden = file.cases()[0];
  ReferenceBackend<double> backend;
  GoldenRun<double> run(&backend, golden);
  auto optimizer = MakeOptimizer({.kind = OptimizerOptions::Kind::kLamb, .weight_decay = 0.01},
                                 &backend, run.model());
  ASSERT_THAT(optimizer, IsOk());
  ASSERT_THAT((*optimizer)->Commit(), IsOk());
  const std::vector<double> losses = golden.Numbers("losses");

  for (size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(run.Pass(step == 0, 1e-8), losses[step], 1e-7) << "step " << step;
    (*optimizer)->Step(0.01);
  }
}

// 301 tensors at their real widths; float rounding grows through 76 normalisations over few pixels.
TEST(DeepcamGoldenTest, TheReferencesWidthAnswersAsPyTorch) {
  const GoldenFile file("models.json");
  const GoldenCase golden = file.cases()[1];
  auto backend = MakeBackend("onednn");
  ASSERT_THAT(backend, IsOk());
  GoldenRun<float> run(backend->get(), golden);

  EXPECT_EQ(run.model()->parameter_count(), golden.Integer("parameters"));
  EXPECT_NEAR(run.Pass(true, 2e-3), golden.Numbers("losses")[0], 2e-3);
}

}  // namespace
}  // namespace assay
