// Layers, losses, optimizers and schedules against PyTorch, in double on the reference backend and
// in float on the fast one. Tolerances: golden numbers have 12 digits; float results may be off by
// 2e-5 of O(1) values.

#include "tests/worker/engine/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "worker/engine/arena.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/map_layers.h"
#include "worker/engine/maps.h"
#include "worker/engine/model.h"
#include "worker/engine/optimizer.h"
#include "worker/engine/step_schedule.h"

namespace assay {
namespace {

using testing::IsOk;

template <typename T>
constexpr double kTolerance = std::is_same_v<T, double> ? 1e-10 : 2e-5;

template <typename T>
void ExpectNumbers(const std::string& what, const Tensor& actual,
                   const std::vector<double>& expected) {
  ASSERT_EQ(actual.elements(), std::ssize(expected)) << what;
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(double{actual.As<T>()[i]}, expected[i], kTolerance<T> * (1 + std::abs(expected[i])))
        << what << " element " << i;
}

Shape ShapeIn(const GoldenCase& golden) {
  const std::vector<double> d = golden.Numbers("x_shape");
  return {static_cast<int64_t>(d[0]), static_cast<int64_t>(d[1]), static_cast<int64_t>(d[2]),
          static_cast<int64_t>(d[3])};
}

// Runs the layer of one case with the case's inputs.
template <typename T>
class Runner {
 public:
  Runner(Backend* backend, const GoldenCase& golden)
      : backend_(backend), golden_(golden), arena_(backend, 64) {}

  void RunConv() {
    const Shape shape = ShapeIn(golden_);
    const bool is_deconv = golden_.Text("kind") == "deconv";
    const auto integer = [&](const char* name) { return golden_.Integer(name); };
    std::unique_ptr<Layer> layer;
    if (is_deconv) {
      layer = std::make_unique<Deconv2dLayer>(backend_, shape, "deconv", integer("filters"));
    } else {
      layer = std::make_unique<Conv2dLayer>(backend_, shape,
                                            Conv2dLayer::Options{.name = "conv",
                                                                 .filters = integer("filters"),
                                                                 .kernel = integer("kernel"),
                                                                 .stride = integer("stride"),
                                                                 .dilation = integer("dilation"),
                                                                 .groups = integer("groups")});
    }
    Commit(layer.get());
    Parameter* kernel = layer->parameters()[0];
    Set(GoldenTensor<T>(2, kernel->shape), kernel->value);
    layer->ParametersChanged();
    HostTensor<T> x = GoldenTensor<T>(1, shape), dy = GoldenTensor<T>(3, layer->output());
    ExpectNumbers<T>("y", layer->Forward(x.view(), pass_), golden_.Numbers("y"));
    ExpectNumbers<T>("dx", layer->Backward(x.view(), dy.view(), pass_), golden_.Numbers("dx"));
    ExpectNumbers<T>("dw", kernel->gradient, golden_.Numbers("dw"));
  }

  void RunNorm() {
    const Shape shape = ShapeIn(golden_);
    BatchNormLayer layer(backend_, shape, {.name = "norm", .relu = true});
    Commit(&layer);
    Set(GoldenTensor<T>(2, {shape[3]}, 0.5, 1), layer.parameters()[0]->value);
    Set(GoldenTensor<T>(4, {shape[3]}, 0.5), layer.parameters()[1]->value);
    Set(GoldenTensor<T>(0, {shape[3]}, 0, 1), layer.buffers()[1]->value);
    HostTensor<T> x = GoldenTensor<T>(1, shape, 2, 3), dy = GoldenTensor<T>(3, shape);
    ExpectNumbers<T>("y", layer.Forward(x.view(), pass_), golden_.Numbers("y"));
    ExpectNumbers<T>("dx", layer.Backward(x.view(), dy.view(), pass_), golden_.Numbers("dx"));
    ExpectNumbers<T>("dscale", layer.parameters()[0]->gradient, golden_.Numbers("dscale"));
    ExpectNumbers<T>("dshift", layer.parameters()[1]->gradient, golden_.Numbers("dshift"));
    ExpectNumbers<T>("mean", layer.buffers()[0]->value, golden_.Numbers("running_mean"));
    ExpectNumbers<T>("variance", layer.buffers()[1]->value, golden_.Numbers("running_variance"));
    ExpectNumbers<T>("evaluation", layer.Forward(x.view(), {.is_training = false}),
                     golden_.Numbers("eval_y"));
  }

  void RunLoss() {
    const Shape shape = ShapeIn(golden_);
    HostTensor<T> logits = GoldenTensor<T>(1, shape, 4), gradient(shape), loss({1}), weights({3});
    HostTensor<uint8_t> labels({shape[0], shape[1], shape[2]});
    for (size_t i = 0; i < labels.values.size(); ++i) {
      const double u = GoldenNoise(2, i);
      labels.values[i] = u < 0 ? 0 : u < 0.5 ? 1 : 2;
    }
    const double frequencies[] = {0.986267818390377, 0.0004578708870701058, 0.01327431072255291};
    for (size_t c = 0; c < 3; ++c)
      weights.values[c] = static_cast<T>(std::pow(frequencies[c], -0.125));
    backend_->maps()->SoftmaxCrossEntropy(logits.view(), labels.view(), weights.view(),
                                          gradient.view(), loss.view());
    ExpectNumbers<T>("loss", loss.view(), {golden_.Number("loss")});
    ExpectNumbers<T>("dx", gradient.view(), golden_.Numbers("dx"));
  }

 private:
  void Commit(Layer* layer) {
    size_t scratch = 0;
    ASSERT_THAT(layer->Plan({&arena_, &scratch}, true), IsOk());
    for (Parameter* parameter : layer->parameters()) {
      arena_.Reserve(parameter->shape, backend_->real(), &parameter->value);
      arena_.Reserve(parameter->shape, backend_->real(), &parameter->gradient);
    }
    for (Buffer* buffer : layer->buffers())
      arena_.Reserve(buffer->shape, backend_->real(), &buffer->value);
    ASSERT_THAT(arena_.Commit(), IsOk());
  }

  void Set(const HostTensor<T>& from, const Tensor& to) {
    backend_->CopyIn(from.values.data(), to);
  }

  Backend* const backend_;
  const GoldenCase& golden_;
  Arena arena_;
  const Pass pass_ = {.is_training = true};
};

template <typename T>
void RunLayers(Backend* backend) {
  const GoldenFile file("layers.json");
  for (const GoldenCase& golden : file.cases()) {
    SCOPED_TRACE(golden.Text("name"));
    Runner<T> runner(backend, golden);
    if (golden.Text("kind") == "norm") {
      runner.RunNorm();
    } else if (golden.Text("kind") == "loss") {
      runner.RunLoss();
    } else {
      runner.RunConv();
    }
  }
}

TEST(GoldenTest, LayersAnswerAsPyTorchInDouble) {
  ReferenceBackend<double> backend;

  RunLayers<double>(&backend);
}

TEST(GoldenTest, LayersAnswerAsPyTorchInFloat) {
  auto backend = MakeBackend("onednn");
  ASSERT_THAT(backend, IsOk());

  RunLayers<float>(backend->get());
}

// A layer that is nothing but its parameters.
class BareParameters : public Layer {
 public:
  BareParameters() {
    matrix_ = {.name = "matrix", .shape = {4, 3}};
    vector_ = {.name = "vector", .shape = {5}};
  }
  Shape output() const override { return {1}; }
  std::vector<Parameter*> parameters() override { return {&matrix_, &vector_}; }
  absl::Status Plan(LayerMemory, bool) override { return absl::OkStatus(); }
  Tensor Forward(const Tensor& x, const Pass&) override { return x; }
  Tensor Backward(const Tensor&, const Tensor& dy, const Pass&) override { return dy; }

 private:
  Parameter matrix_, vector_;
};

// Ten steps; the second tensor begins at zero, and every second gradient is longer than 1.
template <typename T>
void RunOptimizer(Backend* backend, const GoldenCase& golden) {
  Model model(backend, Shape{1});
  model.Add(std::make_unique<BareParameters>());
  ASSERT_THAT(model.Commit(), IsOk());
  const absl::StatusOr<OptimizerOptions::Kind> kind = ParseOptimizer(golden.Text("name"));
  ASSERT_THAT(kind, IsOk());
  auto optimizer = MakeOptimizer({.kind = *kind, .weight_decay = golden.Number("weight_decay")},
                                 backend, &model);
  ASSERT_THAT(optimizer, IsOk());
  ASSERT_THAT((*optimizer)->Commit(), IsOk());
  const std::vector<Parameter*>& parameters = model.parameters();
  backend->CopyIn(GoldenTensor<T>(1, {4, 3}).values.data(), parameters[0]->value);
  const JsonList& history = *golden["parameters"].AsList();
  for (uint32_t step = 1; step <= history.size(); ++step) {
    for (uint32_t i = 0; i < 2; ++i)
      backend->CopyIn(
          GoldenTensor<T>(100 * step + i, parameters[i]->shape, step % 2 == 1 ? 2 : 0.05)
              .values.data(),
          parameters[i]->gradient);
    (*optimizer)->Step(step < 6 ? 0.05 : 0.01);
    for (size_t i = 0; i < 2; ++i)
      ExpectNumbers<T>("step " + std::to_string(step), parameters[i]->value,
                       GoldenCase::ListOf((*history[step - 1].AsList())[i]));
  }
}

TEST(GoldenTest, TenStepsOfEachOptimizerAreAsPyTorchs) {
  ReferenceBackend<double> reference;
  auto fast = MakeBackend("onednn");
  ASSERT_THAT(fast, IsOk());
  const GoldenFile file("optimizers.json");
  for (const GoldenCase& golden : file.cases()) {
    SCOPED_TRACE(golden.Text("name") + " " + std::to_string(golden.Number("weight_decay")));
    RunOptimizer<double>(&reference, golden);
    RunOptimizer<float>(fast->get(), golden);
  }
}

TEST(GoldenTest, SchedulesWithoutWarmupAreAsPyTorchs) {
  const GoldenFile file("schedules.json");
  for (const GoldenCase& golden : file.cases()) {
    SCOPED_TRACE(golden.Text("name"));
    StepSchedule schedule = {.base = 1, .milestones = {4, 8}, .decay = 0.1};
    if (golden.Text("name") == "cosine")
      schedule = {.kind = StepSchedule::Kind::kCosine, .base = 1, .period = 6, .least = 0.1};
    const std::vector<double> rates = golden.Numbers("rates");
    for (size_t i = 0; i < rates.size(); ++i)
      EXPECT_NEAR(LearningRateAtStep(schedule, static_cast<int64_t>(i) + 1), rates[i], 1e-9) << i;
  }
}

}  // namespace
}  // namespace assay
