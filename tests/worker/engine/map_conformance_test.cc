// Operations on maps and optimizers: every backend against the reference.
//
// Tolerance and factors as in conformance_test.cc, but for maps in bfloat16, which round each
// number that they store: of the largest result, at most Rounding().

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/engine/conformance.h"
#include "worker/engine/adaptive.h"
#include "worker/engine/bfloat16.h"
#include "worker/engine/maps.h"

namespace assay {
namespace {

using testing::IsOk;

class MapConformanceTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NE(backend_->maps(), nullptr) << GetParam();
    ASSERT_NE(backend_->adaptive(), nullptr) << GetParam();
  }

  // By how much of the largest one a map's numbers may be off because they are stored: bfloat16's
  // half unit in the last place is 2^-9 of a number.
  static double Rounding(double times = 1) { return HasBf16Maps(GetParam()) ? times / 256 : 0; }
  static void ExpectCloseMap(const Floats& actual, const Floats& expected, int64_t terms,
                             double times = 1) {
    ExpectClose(actual, expected, terms, Rounding(times));
  }
};

struct ConvResult {
  Floats y, dx, dw;
};

ConvResult RunConvolution(Backend* backend, const std::string& numbers, const Conv2dShape& shape) {
  Floats x = DrawFactors(numbers, shape.x(), 1), w = DrawFactors(numbers, shape.w(), 2);
  Floats dy = DrawFactors(numbers, shape.y(), 3);
  ConvResult result = {Floats(shape.y()), Floats(shape.x()), Floats(shape.w())};
  auto convolution = backend->maps()->MakeConvolution2d(shape);
  EXPECT_THAT(convolution, IsOk());
  (*convolution)->Forward(x.view(), w.view(), result.y.view());
  (*convolution)->BackwardData(dy.view(), w.view(), result.dx.view());
  (*convolution)->BackwardWeights(x.view(), dy.view(), result.dw.view());
  backend->Synchronize();
  return result;
}

// One row for each kind of convolution of DeepCAM, at small extents and the real channel tails.
TEST_P(MapConformanceTest, ConvolutionsAgree) {
  const struct {
    const char* name;
    Conv2dShape shape;
  } rows[] = {
      {"first layer", {2, 32, 48, 16, 32, 3, 2}},
      {"second layer", {1, 16, 24, 32, 64, 3}},
      {"skip", {2, 16, 24, 64, 128, 1, 2}},
      {"skip of an odd map", {1, 5, 7, 8, 16, 1, 2}},
      {"pointwise", {2, 6, 9, 91, 728, 1}},
      {"depthwise", {2, 6, 9, 91, 91, 3, 1, 1, 91}},
      {"strided depthwise", {1, 12, 10, 64, 64, 3, 2, 1, 64}},
      {"strided depthwise of an odd map", {1, 7, 5, 20, 20, 3, 2, 1, 20}},
      {"strided depthwise of odd channels", {2, 7, 6, 13, 13, 3, 2, 1, 13}},
      {"depthwise of many strips", {3, 23, 37, 24, 24, 3, 1, 1, 24}},
      {"dilated depthwise", {1, 6, 9, 48, 48, 3, 1, 2, 48}},
      {"wide depthwise", {1, 5, 40, 35, 35, 3, 1, 1, 35}},
      {"dilated depthwise of many strips", {2, 11, 53, 40, 40, 3, 1, 2, 40}},
      {"dilated depthwise of odd channels", {1, 9, 35, 13, 13, 3, 1, 3, 13}},
      {"strided depthwise of many strips", {2, 11, 75, 24, 24, 3, 2, 1, 24}},
      {"strided and dilated depthwise", {1, 9, 12, 16, 16, 3, 2, 2, 16}},
      {"depthwise of one column", {2, 5, 1, 16, 16, 3, 1, 1, 16}},
      {"strided depthwise of one row", {2, 1, 9, 16, 16, 3, 2, 1, 16}},
      {"depthwise of five", {1, 6, 9, 20, 20, 5, 1, 1, 20}},
      {"depthwise beyond the map", {1, 4, 9, 20, 20, 3, 1, 5, 20}},
      {"pyramid 6", {1, 6, 9, 64, 32, 3, 1, 6}},
      {"pyramid 18, beyond the map", {2, 6, 9, 64, 32, 3, 1, 18}},
      {"wide pyramid 6", {2, 6, 9, 96, 64, 3, 1, 6}},
      {"wide pyramid 6 of a large map", {1, 20, 24, 64, 80, 3, 1, 6}},
      {"wide pyramid 12", {2, 14, 11, 64, 64, 3, 1, 12}},
      {"wide pyramid 18, beyond the map", {1, 6, 9, 64, 96, 3, 1, 18}},
      {"decoder", {1, 12, 18, 76, 64, 3}},
      {"decoder of a large map", {2, 18, 23, 64, 48, 3}},
      {"transposed", {1, 12, 18, 64, 64, 3, 2}},
      {"transposed last", {1, 32, 48, 3, 64, 3, 2}},
      {"transposed to an odd map", {2, 7, 5, 6, 64, 3, 2}},
      {"transposed in parts", {1, 130, 63, 3, 64, 3, 2}},
      {"narrow", {2, 8, 8, 4, 8, 3}},
      {"odd channels", {1, 6, 5, 3, 5, 3, 2}},
      {"grouped", {1, 6, 5, 8, 12, 3, 1, 1, 4}},
  };

  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const ConvResult actual = RunConvolution(backend_.get(), GetParam(), row.shape);
    const ConvResult expected = RunConvolution(&reference_, GetParam(), row.shape);
    const int64_t taps = row.shape.kernel * row.shape.kernel;
    ExpectCloseMap(actual.y, expected.y, taps * row.shape.in_channels);
    ExpectCloseMap(actual.dx, expected.dx, taps * row.shape.out_channels);
    // The library stores its gradients in the maps' number; products and loops of ours do not.
    const bool is_of_library = row.shape.groups == 1 && taps * row.shape.stride > 1;
    ExpectClose(actual.dw, expected.dw, row.shape.y().elements() / row.shape.out_channels,
                is_of_library ? Rounding() : 0);
  }
}

// Channels that fill no vector: some of the library's strided kernels wrote a whole one behind
// them.
TEST_P(MapConformanceTest, ConvolutionsWriteNothingBehindTheirResults) {
  const std::vector<float> mark(64, 7);
  for (const Conv2dShape& shape :
       {Conv2dShape{2, 48, 48, 8, 16, 1, 2}, Conv2dShape{1, 24, 24, 24, 40, 1, 2}}) {
    Floats x = Floats::Random(shape.x(), 1), w = Floats::Random(shape.w(), 2);
    Floats dy = Floats::Random(shape.y(), 3);
    ConvResult result = {Floats(shape.y()), Floats(shape.x()), Floats(shape.w())};
    for (Floats* one : {&result.y, &result.dx, &result.dw})
      one->values.insert(one->values.end(), mark.begin(), mark.end());
    auto convolution = backend_->maps()->MakeConvolution2d(shape);
    (*convolution)->Forward(x.view(), w.view(), result.y.view());
    (*convolution)->BackwardData(dy.view(), w.view(), result.dx.view());
    (*convolution)->BackwardWeights(x.view(), dy.view(), result.dw.view());
    backend_->Synchronize();
    for (const Floats* one : {&result.y, &result.dx, &result.dw})
      EXPECT_TRUE(std::equal(mark.begin(), mark.end(), one->values.end() - 64)) << one->shape[3];
  }
}

// y = normalise(x * w) with statistics that do not come from x: at once where the backend offers
// it.
Floats RunNormalised(Backend* backend, const std::string& numbers, const Conv2dShape& shape,
                     bool relu) {
  const Shape channels = {shape.out_channels};
  Floats x = DrawFactors(numbers, shape.x(), 1), w = DrawFactors(numbers, shape.w(), 2);
  Floats mean = Floats::Random(channels, 3), variance = Floats::Random(channels, 4);
  Floats scale = Floats::Random(channels, 5), shift = Floats::Random(channels, 6);
  for (float& value : variance.values)
    value = 2 + value;
  const Normalisation n = {mean.view(), variance.view(), scale.view(), shift.view(), 1e-5, relu};
  Floats y(shape.y());
  auto convolution = backend->maps()->MakeConvolution2d(shape);
  EXPECT_THAT(convolution, IsOk());
  (*convolution)->PlanNormalised(relu);
  for (int time = 0; time < 3; ++time) {  // the second time with what the first one prepared
    if (time == 2) {
      for (float& value : w.values)
        value *= -2;
      (*convolution)->WeightsChanged();
    }
    if ((*convolution)->ForwardNormalised(x.view(), w.view(), n, y.view())) continue;
    (*convolution)->Forward(x.view(), w.view(), y.view());
    backend->maps()->Normalise(n, y.view(), y.view());
  }
  backend->Synchronize();
  return y;
}

TEST_P(MapConformanceTest, NormalisedConvolutionsAgree) {
  const struct {
    const char* name;
    Conv2dShape shape;
  } rows[] = {
      {"first layer", {2, 32, 48, 16, 32, 3, 2}},
      {"second layer", {1, 16, 24, 32, 64, 3}},
      {"skip", {2, 16, 24, 64, 128, 1, 2}},
      {"pointwise", {2, 6, 9, 91, 728, 1}},
      {"pointwise of an odd width", {1, 3, 5, 7, 13, 1}},
      {"pyramid 6 of a large map", {2, 24, 36, 64, 64, 3, 1, 6}},
      {"pyramid 6 of a map that it does not divide", {1, 23, 34, 96, 80, 3, 1, 6}},
      {"depthwise", {2, 6, 9, 91, 91, 3, 1, 1, 91}},
      {"strided depthwise", {2, 7, 6, 24, 24, 3, 2, 1, 24}},
      {"dilated depthwise", {1, 9, 35, 13, 13, 3, 1, 3, 13}},
      {"pyramid 6", {1, 6, 9, 64, 32, 3, 1, 6}},
      {"wide pyramid 12", {1, 14, 11, 64, 64, 3, 1, 12}},
      {"decoder", {1, 12, 18, 76, 64, 3}},
      {"strided", {1, 12, 18, 64, 64, 3, 2}},
      {"narrow", {2, 8, 8, 4, 8, 3}},
  };
  for (const auto& row : rows) {
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(row.name);
      ExpectCloseMap(RunNormalised(backend_.get(), GetParam(), row.shape, relu),
                     RunNormalised(&reference_, GetParam(), row.shape, relu),
                     row.shape.kernel * row.shape.kernel * row.shape.in_channels, 2);
    }
  }
}

struct NormResult {
  Floats mean, variance, y, dy, scale_gradient, shift_gradient;
};

NormResult RunNorm(Backend* backend, const std::string& numbers, const Shape& shape, bool relu) {
  const Shape channels = {shape[3]};
  // A mean that a careless variance would lose digits to.
  Floats x = DrawMap(numbers, shape, 1, 3), scale = Floats::Random(channels, 2);
  Floats shift = Floats::Random(channels, 3);
  NormResult r = {Floats(channels),           Floats(channels), Floats(shape),
                  DrawMap(numbers, shape, 4), Floats(channels), Floats(channels)};
  backend->maps()->ChannelMoments(x.view(), r.mean.view(), r.variance.view());
  const Normalisation n = {r.mean.view(), r.variance.view(), scale.view(), shift.view(), 1e-5,
                           relu};
  backend->maps()->Normalise(n, x.view(), r.y.view());
  backend->maps()->NormaliseSums(n, x.view(), r.y.view(), r.dy.view(), r.scale_gradient.view(),
                                 r.shift_gradient.view());
  const double share = static_cast<double>(shape[3]) / static_cast<double>(shape.elements());
  backend->maps()->NormaliseBackward(
      n, x.view(), {r.scale_gradient.view(), r.shift_gradient.view(), share}, r.dy.view());
  backend->Synchronize();
  return r;
}

TEST_P(MapConformanceTest, BatchNormAgrees) {
  for (const Shape& shape : {Shape{2, 16, 24, 64}, Shape{1, 3, 5, 91}, Shape{4, 6, 9, 728}}) {
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(shape.ToString());
      const NormResult actual = RunNorm(backend_.get(), GetParam(), shape, relu);
      const NormResult expected = RunNorm(&reference_, GetParam(), shape, relu);

      const int64_t rows = shape.elements() / shape[3];
      ExpectClose(actual.mean, expected.mean, rows);
      ExpectClose(actual.variance, expected.variance, rows);
      ExpectCloseMap(actual.y, expected.y, rows);
      ExpectCloseMap(actual.dy, expected.dy, rows);
      ExpectClose(actual.scale_gradient, expected.scale_gradient, rows);
      ExpectClose(actual.shift_gradient, expected.shift_gradient, rows);
    }
  }
}

TEST_P(MapConformanceTest, NormalisedSumsAgree) {
  for (const Shape& shape : {Shape{2, 16, 24, 64}, Shape{1, 3, 5, 91}}) {
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(shape.ToString());
      std::vector<Floats> results;
      for (Backend* backend : {backend_.get(), static_cast<Backend*>(&reference_)}) {
        Floats x = DrawMap(GetParam(), shape, 1), other = DrawMap(GetParam(), shape, 2), y(shape);
        const Shape channels = {shape[3]};
        Floats mean = Floats::Random(channels, 3), variance(channels), shift(channels);
        Floats scale = Floats::Random(channels, 4);
        std::fill(variance.values.begin(), variance.values.end(), 0.5F);
        backend->maps()->NormaliseAdd(
            {mean.view(), variance.view(), scale.view(), shift.view(), 1e-5, relu}, x.view(),
            other.view(), y.view());
        backend->Synchronize();
        results.push_back(y);
      }
      ExpectCloseMap(results[0], results[1], 1);
    }
  }
}

// Far from zero beside its spread: what squares of the numbers themselves would not tell.
TEST_P(MapConformanceTest, MomentsOfNumbersFarFromZeroKeepTheirDigits) {
  const Shape shape = {2, 30, 40, 24};
  Floats x = DrawMap(GetParam(), shape, 1, HasBf16Maps(GetParam()) ? 100 : 10'000);
  Floats mean({24}), variance({24}), expected_mean({24}), expected_variance({24});

  backend_->maps()->ChannelMoments(x.view(), mean.view(), variance.view());
  backend_->Synchronize();
  reference_.maps()->ChannelMoments(x.view(), expected_mean.view(), expected_variance.view());

  ExpectClose(mean, expected_mean, 1);
  ExpectClose(variance, expected_variance, 1, 1e-4);
}

TEST_P(MapConformanceTest, RunningMomentsAgree) {
  std::vector<Floats> results;
  for (Backend* backend : {backend_.get(), static_cast<Backend*>(&reference_)}) {
    Floats mean = Floats::Random({19}, 1), variance = Floats::Random({19}, 2);
    Floats running_mean = Floats::Random({19}, 3), running_variance = Floats::Random({19}, 4);
    backend->maps()->MoveRunning({.mean = mean.view(),
                                  .variance = variance.view(),
                                  .running_mean = running_mean.view(),
                                  .running_variance = running_variance.view(),
                                  .rate = 0.1,
                                  .unbiased = 1.25});
    backend->Synchronize();
    results.insert(results.end(), {running_mean, running_variance});
  }
  ExpectClose(results[0], results[2], 2);
  ExpectClose(results[1], results[3], 2);
}

TEST_P(MapConformanceTest, JoinsAndSpatialOperationsAgree) {
  const Shape wide = {2, 5, 7, 20}, narrow = {2, 5, 7, 6}, point = {2, 1, 1, 6};
  for (Backend* backend : {backend_.get(), static_cast<Backend*>(&reference_)}) {
    Floats all = DrawMap(GetParam(), wide, 1), part = DrawMap(GetParam(), narrow, 2);
    Floats taken(narrow);
    Floats sum(point), spread(narrow);
    MapOperations* maps = backend->maps();
    maps->PutChannels(part.view(), 3, all.view());
    maps->TakeChannels(all.view(), 3, taken.view());
    maps->SpatialSum(part.view(), 0.5, sum.view());
    maps->SpatialSpread(sum.view(), 2, spread.view());
    backend->Synchronize();

    EXPECT_EQ(taken.values, part.values);
    EXPECT_EQ(all.values[2], DrawMap(GetParam(), wide, 1).values[2]);
    EXPECT_EQ(all.values[20 + 3], part.values[6]);
    double total = 0;
    for (size_t pixel = 0; pixel < 35; ++pixel)
      total += double{part.values[pixel * 6 + 4]};
    EXPECT_NEAR(sum.values[4], total / 2, 1e-5 + Rounding(std::abs(total)));
    EXPECT_NEAR(spread.values[34 * 6 + 4], total, 1e-5 + Rounding(2 * std::abs(total)));
  }
}

TEST_P(MapConformanceTest, ElementwiseOperationsAgree) {
  const Shape shape = {40'000};
  const auto stored = [this](Backend* backend, float value) {
    const bool is_rounded = backend == backend_.get() && HasBf16Maps(GetParam());
    return is_rounded ? float(Bfloat16(value)) : value;
  };
  for (Backend* backend : {backend_.get(), static_cast<Backend*>(&reference_)}) {
    Floats x = DrawMap(GetParam(), shape, 1), y = DrawMap(GetParam(), shape, 2);
    const Floats before = y;
    backend->maps()->Combine(2, x.view(), 0.5, y.view());
    backend->Synchronize();
    for (size_t i = 0; i < 100; ++i)
      EXPECT_FLOAT_EQ(y.values[i], stored(backend, 2 * x.values[i] + 0.5F * before.values[i]));

    Floats sum(shape), cut(shape);
    backend->maps()->Sum(x.view(), y.view(), false, sum.view());
    backend->maps()->Sum(x.view(), y.view(), true, cut.view());
    backend->Synchronize();
    for (size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(sum.values[i], stored(backend, x.values[i] + y.values[i]));
      EXPECT_EQ(cut.values[i], std::max(sum.values[i], 0.0F));
    }

    Floats dy = DrawMap(GetParam(), shape, 3);
    const Floats incoming = dy;
    backend->maps()->Relu(x.view());
    backend->maps()->ReluBackward(x.view(), dy.view());
    backend->Synchronize();
    EXPECT_EQ(*std::min_element(x.values.begin(), x.values.end()), 0);
    for (size_t i = 0; i < 100; ++i)
      EXPECT_EQ(dy.values[i], x.values[i] > 0 ? incoming.values[i] : 0);
  }
}

// A bias on a map, which has far more rows than a batch of a dense layer.
TEST_P(MapConformanceTest, BiasAgrees) {
  const Shape shape = {2'500, 19};
  for (const double slope : {1.0, 0.25}) {
    const Activation f = {Activation::Kind::kLeakyRelu, slope};
    std::vector<Floats> results;
    for (Backend* backend : {backend_.get(), static_cast<Backend*>(&reference_)}) {
      Floats y = DrawMap(GetParam(), shape, 1), dy = DrawMap(GetParam(), shape, 2);
      Floats bias = Floats::Random({19}, 3), dbias({19});
      backend->ActivationForward(y.view(), bias.view(), f);
      backend->ActivationBackward(y.view(), f, dy.view(), dbias.view());
      backend->Synchronize();
      results.insert(results.end(), {y, dy, dbias});
    }
    if (HasBf16Maps(GetParam())) {
      ExpectCloseMap(results[0], results[3], 1);
      ExpectCloseMap(results[1], results[4], 1);
    } else {
      EXPECT_EQ(results[0].values, results[3].values);
      EXPECT_EQ(results[1].values, results[4].values);
    }
    ExpectClose(results[2], results[5], 2'500, Rounding());
  }
}

TEST_P(MapConformanceTest, CrossEntropyAndArgmaxAgree) {
  const Shape shape = {2, 40, 30, 3};
  Floats logits = Floats::Random(shape, 1), weights({3}, {1.0F, 2.6F, 1.7F});
  for (float& value : logits.values)
    value *= 20;  // some exponentials underflow
  HostTensor<uint8_t> labels({2, 40, 30}), predicted(labels.shape), expected_labels(labels.shape);
  for (size_t i = 0; i < labels.values.size(); ++i)
    labels.values[i] = static_cast<uint8_t>(i % 7 % 3);
  Floats gradient(shape), loss({1}), expected_gradient(shape), expected_loss({1});

  backend_->maps()->SoftmaxCrossEntropy(logits.view(), labels.view(), weights.view(),
                                        gradient.view(), loss.view());
  backend_->maps()->Argmax(logits.view(), predicted.view());
  backend_->Synchronize();
  reference_.maps()->SoftmaxCrossEntropy(logits.view(), labels.view(), weights.view(),
                                         expected_gradient.view(), expected_loss.view());
  reference_.maps()->Argmax(logits.view(), expected_labels.view());

  ExpectClose(gradient, expected_gradient, 1);
  ExpectClose(loss, expected_loss, 1);
  EXPECT_EQ(predicted.values, expected_labels.values);
}

// Exactly: they are whole numbers. Samples differ, and one has a class that is in neither.
TEST_P(MapConformanceTest, CountsOfClassesAreEqual) {
  HostTensor<uint8_t> labels({3, 35, 29}), truth(labels.shape);
  for (size_t i = 0; i < labels.values.size(); ++i) {
    labels.values[i] = static_cast<uint8_t>(i % 11 % 3);
    truth.values[i] = static_cast<uint8_t>(i < 35 * 29 ? 2 : i * i % 7 % 3);
  }
  std::fill_n(labels.values.begin(), 35 * 29, uint8_t{2});
  Floats counts({2, 3, 3}), expected(counts.shape);

  backend_->maps()->CountClasses(labels.view(), truth.view(), counts.view());
  backend_->Synchronize();
  reference_.maps()->CountClasses(labels.view(), truth.view(), expected.view());

  EXPECT_EQ(counts.values, expected.values);
  EXPECT_EQ(expected.values[0], 0);
  EXPECT_EQ(expected.values[2], 35 * 29);
}

struct Moved {
  Floats p, m, v;
};

// Three steps of one optimizer. `advance(step, g)` makes one with new gradients.
template <typename Advance>
Moved RunOptimizer(const Shape& shape, Advance advance) {
  Moved state = {Floats::Random(shape, 1), Floats(shape), Floats(shape)};
  for (uint32_t step = 1; step <= 3; ++step) {
    Floats g = Floats::Random(shape, 10 + step);
    advance(AdaptiveStep{.learning_rate = 0.1, .weight_decay = 0.02, .step = step}, g.view(),
            &state);
  }
  return state;
}

void ExpectSameMove(const Moved& actual, const Moved& expected) {
  ExpectClose(actual.p, expected.p, 9);
  ExpectClose(actual.m, expected.m, 9);
  ExpectClose(actual.v, expected.v, 9);
}

TEST_P(MapConformanceTest, AdamAndAdamWAgree) {
  for (const auto operation : {&AdaptiveOperations::Adam, &AdaptiveOperations::AdamW}) {
    const auto run = [operation](Backend* backend) {
      return RunOptimizer({20'001}, [&](const AdaptiveStep& step, const Tensor& g, Moved* state) {
        (backend->adaptive()->*operation)(step, state->p.view(), g, state->m.view(),
                                          state->v.view());
        backend->Synchronize();
      });
    };
    ExpectSameMove(run(backend_.get()), run(&reference_));
  }
}

// With gradients longer and shorter than the limit and without one, with and without weight decay.
TEST_P(MapConformanceTest, LambAgrees) {
  const std::vector<int64_t> sizes = {1, 5000, 15'000};
  for (const double max_length : {40.0, 1000.0, 0.0}) {
    for (const double weight_decay : {0.02, 0.0}) {
      SCOPED_TRACE(max_length);
      SCOPED_TRACE(weight_decay);
      const auto run = [&](Backend* backend) {
        return RunOptimizer({20'001}, [&](AdaptiveStep step, const Tensor& g, Moved* state) {
          step.max_length = max_length;
          step.weight_decay = weight_decay;
          backend->adaptive()->Lamb(step, sizes, state->p.view(), g, state->m.view(),
                                    state->v.view());
          backend->Synchronize();
        });
      };
      ExpectSameMove(run(backend_.get()), run(&reference_));
    }
  }
}

// In the first step the direction is the gradient's sign, if epsilon is next to nothing.
TEST_P(MapConformanceTest, LambMovesEachTensorByItsOwnLengths) {
  Floats p({6}, {0, 0, 0, 3, 0, 4}), g({6}, {1, -2, 4, -8, 1, 1}), m(p.shape), v(p.shape);
  const std::vector<int64_t> sizes = {3, 3};

  backend_->adaptive()->Lamb({.learning_rate = 0.5, .epsilon = 1e-12, .weight_decay = 1e-12}, sizes,
                             p.view(), g.view(), m.view(), v.view());
  backend_->Synchronize();

  const float move = 0.5F * 5 / std::sqrt(3.0F);  // lengths 5 and the root of 3
  const std::vector<float> expected = {-0.5F, 0.5F, -0.5F, 3 + move, -move, 4 - move};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(p.values[i], expected[i], 1e-5) << "element " << i;
}

std::vector<std::string> BackendsToCompare() {
  std::vector<std::string> names = MapBackendsUnderTest();
  std::erase(names, "reference");
  std::erase(names, "onednn-bf16");  // has no maps
  return names;
}

INSTANTIATE_TEST_SUITE_P(Backends, MapConformanceTest, ::testing::ValuesIn(BackendsToCompare()),
                         NameOfBackendTest);

}  // namespace
}  // namespace assay
