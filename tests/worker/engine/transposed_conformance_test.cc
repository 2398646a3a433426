// Transposed convolutions in evaluation: backends against the reference, at extents that tiles
// of three do and do not divide.
//
// Tolerance and factors as in map_conformance_test.cc.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/engine/conformance.h"
#include "worker/engine/arena.h"
#include "worker/engine/map_layers.h"
#include "worker/engine/maps.h"

namespace assay {
namespace {

using testing::IsOk;

class TransposedConformanceTest : public BackendTest {};

// Statistics and factors of some channels.
struct Channels {
  explicit Channels(int64_t count)
      : mean(Floats::Random({count}, 3)),
        variance(Floats::Random({count}, 4)),
        scale(Floats::Random({count}, 5)),
        shift(Floats::Random({count}, 6)) {
    for (float& value : variance.values)
      value += 2;
  }

  Floats mean, variance, scale, shift;
};

// The gradient of x, normalised: at once where the backend offers it. Of three times (the second
// with what the first prepared, the third with other weights) those from `first` on.
Floats RunTransposed(Backend* backend, const std::string& numbers, const Conv2dShape& shape,
                     bool relu, int first) {
  Floats dy = DrawFactors(numbers, shape.y(), 1), w = DrawFactors(numbers, shape.w(), 2);
  Channels c(shape.in_channels);
  const Normalisation n = {c.mean.view(), c.variance.view(), c.scale.view(), c.shift.view(), 1e-5,
                           relu};
  // What it must neither read nor leave.
  Floats dx(shape.x(), std::vector<float>(static_cast<size_t>(shape.x().elements()), 1e30F));
  auto convolution = backend->maps()->MakeConvolution2d(shape);
  EXPECT_THAT(convolution, IsOk());
  for (int time = first; time < 3; ++time) {
    if (time == 2) {
      for (float& value : w.values)
        value *= -2;
      (*convolution)->WeightsChanged();
    }
    if ((*convolution)->BackwardDataNormalised(dy.view(), w.view(), n, dx.view())) continue;
    (*convolution)->BackwardData(dy.view(), w.view(), dx.view());
    backend->maps()->Normalise(n, dx.view(), dx.view());
  }
  backend->Synchronize();
  return dx;
}

TEST_P(TransposedConformanceTest, NormalisedResultsAgree) {
  const struct {
    const char* name;
    bool relu;
    Conv2dShape shape;
  } rows[] = {
      {"decoder, whole tiles", true, {1, 48, 72, 64, 64, 3, 2}},
      {"tiles over the lower edge", false, {2, 50, 54, 64, 64, 3, 2}},
      {"tiles over the right edge", true, {3, 36, 56, 64, 64, 3, 2}},
      {"tiles over both edges by two, odd channels", false, {2, 44, 50, 70, 91, 3, 2}},
      {"to a map of odd height", true, {2, 47, 64, 64, 64, 3, 2}},
      {"to a map of odd width", false, {2, 48, 63, 64, 64, 3, 2}},
      {"to a map odd in both", true, {2, 49, 61, 64, 72, 3, 2}},
      {"one column of tiles, more of them than a strip takes", false, {3, 300, 4, 64, 64, 3, 2}},
      {"samples of one tile", true, {100, 4, 3, 64, 64, 3, 2}},
      {"samples of one pixel", false, {97, 1, 1, 64, 64, 3, 2}},
      {"too few tiles", true, {1, 24, 18, 64, 64, 3, 2}},
      {"narrow", false, {2, 24, 36, 8, 16, 3, 2}},
      {"kernel 5", true, {1, 48, 72, 64, 64, 5, 2}},
      {"stride 3", false, {1, 72, 81, 64, 64, 3, 3}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ExpectClose(RunTransposed(backend_.get(), GetParam(), row.shape, row.relu, 0),
                RunTransposed(&reference_, GetParam(), row.shape, row.relu, 2),
                row.shape.kernel * row.shape.kernel * row.shape.out_channels);
  }
}

// One tap and one input at a time: what rounding could hide in a sum stands alone.
TEST_P(TransposedConformanceTest, EachTapReachesItsPlaces) {
  const Conv2dShape shape = {.batch = 1,
                             .height = 48,
                             .width = 72,
                             .in_channels = 64,
                             .out_channels = 64,
                             .kernel = 3,
                             .stride = 2};
  for (size_t tap = 0; tap < 9; ++tap) {
    SCOPED_TRACE(tap);
    Floats w(shape.w());
    w.values[tap * 64 * 64] = 1;
    Floats dy(shape.y());
    for (size_t pixel = 0; pixel < 24 * 36; ++pixel)
      dy.values[pixel * 64] = static_cast<float>(pixel % 61 + 1);
    Floats mean({64}), variance({64}, std::vector<float>(64, 1)), shift({64}), expected(shape.x());
    const Normalisation n = {mean.view(), variance.view(), variance.view(), shift.view(), 0, false};
    Floats dx(shape.x());
    auto convolution = backend_->maps()->MakeConvolution2d(shape);
    ASSERT_THAT(convolution, IsOk());
    if (!(*convolution)->BackwardDataNormalised(dy.view(), w.view(), n, dx.view()))
      (*convolution)->BackwardData(dy.view(), w.view(), dx.view());
    backend_->Synchronize();
    for (size_t h = 0; h < 24; ++h) {
      for (size_t v = 0; v < 36; ++v) {
        const size_t row = 2 * h + tap / 3, column = 2 * v + tap % 3;  // one too far for padding
        if (row > 0 && column > 0)
          expected.values[((row - 1) * 72 + column - 1) * 64] = dy.values[(h * 36 + v) * 64];
      }
    }
    EXPECT_EQ(dx.values, expected.values);
  }
}

// A layer of the decoder in evaluation, with the statistics that it begins with.
Floats RunLayer(Backend* backend, const std::string& numbers, bool relu) {
  const Shape input = {2, 20, 25, 64}, output = {2, 40, 50, 80};
  ConvNormLayer layer(
      input, std::make_unique<Deconv2dLayer>(backend, input, "deconv", 80),
      std::make_unique<BatchNormLayer>(
          backend, output, BatchNormLayer::Options{.name = "norm", .relu = relu, .epsilon = 1}));
  Arena arena(backend, 64);
  size_t scratch = 0;
  EXPECT_THAT(layer.Plan({&arena, &scratch}, true), IsOk());
  for (Parameter* parameter : layer.parameters()) {
    arena.Reserve(parameter->shape, backend->real(), &parameter->value);
    arena.Reserve(parameter->shape, backend->real(), &parameter->gradient);
  }
  for (Buffer* buffer : layer.buffers())
    arena.Reserve(buffer->shape, backend->real(), &buffer->value);
  EXPECT_THAT(arena.Commit(), IsOk());
  uint32_t salt = 10;
  for (Parameter* parameter : layer.parameters())
    backend->CopyIn(DrawFactors(numbers, parameter->shape, ++salt).values.data(), parameter->value);
  for (Buffer* buffer : layer.buffers())
    backend->CopyIn(Floats(buffer->shape).values.data(), buffer->value);
  layer.ParametersChanged();
  Floats x = DrawFactors(numbers, input, 1), y(output);
  backend->CopyOut(layer.Forward(x.view(), {.is_training = false}), y.values.data());
  return y;
}

TEST_P(TransposedConformanceTest, LayersAgreeInEvaluation) {
  for (const bool relu : {false, true})
    ExpectClose(RunLayer(backend_.get(), GetParam(), relu), RunLayer(&reference_, GetParam(), relu),
                9 * 64);
}

// The backends of their own algorithm, and one that has none.
INSTANTIATE_TEST_SUITE_P(Backends, TransposedConformanceTest,
                         ::testing::Values("onednn", "cuda-on-host"), NameOfBackendTest);

}  // namespace
}  // namespace assay
