// Every backend against the reference, operation by operation, on random input.
//
// Tolerance: ExpectClose. Backends that round factors to bfloat16 get factors that are so already,
// and must keep the same tolerance but where said; what rounding costs is in bf16_factors_test.cc.
// Where a map is bfloat16 in between, numbers are such that it holds them exactly.

#include "tests/worker/engine/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "worker/engine/backends/registry.h"

namespace assay {
namespace {

using testing::IsOk;

class ConformanceTest : public BackendTest {};

struct ConvResult {
  Floats y, dx, dw;
};

// `numbers`: DrawFactors' first argument.
ConvResult RunConvolution(Backend* backend, const std::string& numbers, const ConvShape& shape) {
  Floats x = DrawFactors(numbers, shape.x(), 1), w = DrawFactors(numbers, shape.w(), 2);
  Floats dy = DrawFactors(numbers, shape.y(), 3);
  ConvResult result = {Floats(shape.y()), Floats(shape.x()), Floats(shape.w())};
  auto convolution = backend->MakeConvolution(shape);
  EXPECT_THAT(convolution, IsOk());
  (*convolution)->Forward(x.view(), w.view(), result.y.view());
  (*convolution)->BackwardData(dy.view(), w.view(), result.dx.view());
  (*convolution)->BackwardWeights(x.view(), dy.view(), result.dw.view());
  backend->Synchronize();
  return result;
}

TEST_P(ConformanceTest, ConvolutionsAgree) {
  ConvShape valid_in_depth = SameConv(1, {6, 5, 8}, 8, 8, 3);
  valid_in_depth.pad_before[0] = valid_in_depth.pad_after[0] = 0;
  const struct {
    const char* name;
    ConvShape shape;
  } rows[] = {
      {"first layer", SameConv(2, {16, 16, 16}, 4, 32, 3)},
      {"first layer, kernel 2", SameConv(2, {16, 16, 16}, 4, 32, 2)},
      {"narrow first layer", SameConv(2, {16, 16, 16}, 4, 8, 3)},
      {"narrow", SameConv(2, {8, 8, 8}, 8, 16, 3)},
      {"middle", SameConv(1, {8, 8, 8}, 32, 64, 3)},
      {"middle, kernel 2", SameConv(1, {8, 8, 8}, 32, 64, 2)},
      {"last layer of a cube of 32", SameConv(1, {2, 2, 2}, 128, 256, 3)},
      {"last layer of a cube of 32, kernel 2", SameConv(1, {2, 2, 2}, 128, 256, 2)},
      {"odd extents", SameConv(3, {3, 5, 7}, 16, 16, 3)},
      {"odd channels", SameConv(1, {6, 4, 5}, 3, 5, 3)},
      {"no padding in depth, as a spatial partition has it", valid_in_depth},
  };

  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const ConvResult actual = RunConvolution(backend_.get(), GetParam(), row.shape);
    const ConvResult expected = RunConvolution(&reference_, GetParam(), row.shape);

    const int64_t taps = row.shape.kernel * row.shape.kernel * row.shape.kernel;
    ExpectClose(actual.y, expected.y, taps * row.shape.in_channels);
    ExpectClose(actual.dx, expected.dx, taps * row.shape.out_channels);
    ExpectClose(actual.dw, expected.dw, row.shape.y().elements() / row.shape.out_channels);
  }
}

struct PoolResult {
  Floats y, dx, dbias;
  HostTensor<uint8_t> code;
};

PoolResult RunPool(Backend* backend, const Shape& shape) {
  const Shape pooled = {shape[0], shape[1] / 2, shape[2] / 2, shape[3] / 2, shape[4]};
  Floats x = Floats::Random(shape, 1), bias = Floats::Random({shape[4]}, 2);
  Floats dy = Floats::Random(pooled, 3);
  // Eighths, so that ties are common and sums exact.
  for (float& value : x.values)
    value = std::round(value * 8) / 8;
  PoolResult result = {Floats(pooled), Floats(shape), Floats({shape[4]}),
                       HostTensor<uint8_t>(pooled)};
  std::fill(result.dx.values.begin(), result.dx.values.end(), 9.0F);  // must be overwritten
  backend->PoolForward(x.view(), bias.view(), 0.3, result.y.view(), result.code.view());
  backend->PoolBackward(dy.view(), result.code.view(), 0.3, result.dx.view(), result.dbias.view());
  return result;
}

TEST_P(ConformanceTest, PoolingAgreesExactly) {
  const Shape shapes[] = {
      {2, 8, 8, 8, 32}, {1, 4, 6, 2, 8}, {2, 2, 2, 2, 512}, {1, 4, 4, 4, 5}, {1, 5, 3, 7, 8}};

  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.ToString());
    const PoolResult actual = RunPool(backend_.get(), shape);
    const PoolResult expected = RunPool(&reference_, shape);

    EXPECT_EQ(actual.y.values, expected.y.values);
    EXPECT_EQ(actual.code.values, expected.code.values);
    EXPECT_EQ(actual.dx.values, expected.dx.values);
    ExpectClose(actual.dbias, expected.dbias, expected.y.shape.elements() / shape[4]);
  }
}

struct ConvPoolResult {
  Floats y, dw, dbias, dx;
  HostTensor<uint8_t> code;
};

// -1, 0 or 1 where products are stored in bfloat16: it holds whole numbers up to 256, and sums of
// 3,456 such products are hardly ever beyond.
Floats DrawBlockFactors(const std::string& numbers, const Shape& shape, uint32_t salt) {
  Floats factors = DrawFactors(numbers, shape, salt);
  if (HasBf16Maps(numbers))
    for (float& value : factors.values)
      value = std::round(value * 1.25F);
  return factors;
}

// With zeros behind the channels of each place.
Floats WithChannels(const Floats& x, int64_t channels) {
  Floats wide(x.shape.WithLast(channels));
  const int64_t narrow = x.shape[x.shape.rank() - 1];
  for (size_t i = 0; i < x.values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    wide.values[static_cast<size_t>(at / narrow * channels + at % narrow)] = x.values[i];
  }
  return wide;
}

ConvPoolResult RunConvPool(Backend* backend, const std::string& numbers,
                           const ConvPoolShape& shape) {
  Floats x = WithChannels(DrawBlockFactors(numbers, shape.conv.x(), 1), shape.x()[4]);
  Floats w = DrawBlockFactors(numbers, shape.conv.w(), 2);
  Floats bias = Floats::Random({shape.conv.out_channels}, 3);
  Floats dy = DrawFactors(numbers, shape.y(), 4);
  ConvPoolResult result = {Floats(shape.y()), Floats(w.shape), Floats(bias.shape), Floats(x.shape),
                           HostTensor<uint8_t>(shape.y())};
  auto block = backend->MakeConvPool(shape);
  EXPECT_THAT(block, IsOk());
  HostTensor<uint8_t> scratch({static_cast<int64_t>((*block)->scratch_bytes())});
  const ConvPoolTensors tensors = {x.view(),        w.view(),           bias.view(),
                                   result.y.view(), result.code.view(), scratch.view().data};
  (*block)->Forward(tensors);
  (*block)->Backward(tensors, dy.view(),
                     {.dw = result.dw.view(),
                      .dbias = result.dbias.view(),
                      .dx = shape.wants_dx ? result.dx.view() : Tensor{}});
  backend->Synchronize();
  return result;
}

// `actual` may be of maps and have empty channels.
void ExpectSameBlock(const std::string& backend, const ConvPoolShape& shape,
                     const ConvPoolResult& actual, const ConvPoolResult& expected) {
  const ConvShape& conv = shape.conv;
  const int64_t taps = conv.kernel * conv.kernel * conv.kernel;
  // A gradient times the slope is a new factor, and rounded: by at most 2^-9 of it. So are
  // results that are stored in bfloat16.
  const double rounding = HasBf16Maps(backend)      ? std::ldexp(1, -8)
                          : HasBf16Factors(backend) ? std::ldexp(1, -9)
                                                    : 0;
  EXPECT_EQ(actual.code.values, expected.code.values);
  ExpectClose(actual.y, expected.y, taps * conv.in_channels, shape.is_map ? rounding : 0);
  ExpectClose(actual.dw, expected.dw, conv.y().elements() / conv.out_channels, rounding);
  ExpectClose(actual.dbias, expected.dbias, shape.y().elements() / conv.out_channels);
  if (shape.wants_dx) ExpectClose(actual.dx, expected.dx, taps * conv.out_channels, rounding);
}

// Inputs are continuous, so that maxima are far enough apart to be the same everywhere, or whole
// numbers, whose sums are.
TEST_P(ConformanceTest, FusedBlocksAgree) {
  ConvShape valid_in_depth = SameConv(2, {6, 4, 32}, 4, 8, 3);
  valid_in_depth.pad_before[0] = valid_in_depth.pad_after[0] = 0;
  const struct {
    const char* name;
    ConvPoolShape shape;
  } rows[] = {
      {"first of a network", {SameConv(2, {8, 6, 32}, 4, 32, 3), 0.3, false}},
      {"first, kernel 2", {SameConv(2, {8, 6, 32}, 4, 32, 2), 0.3, false}},
      {"first, narrow, wider cube", {SameConv(1, {4, 4, 64}, 4, 8, 3), 0.3, false}},
      {"first, three channels", {SameConv(1, {4, 4, 32}, 3, 16, 3), 0.3, false}},
      {"first, no padding in depth", {valid_in_depth, 0.3, false}},
      {"first, small cube", {SameConv(2, {8, 8, 8}, 4, 8, 3), 0.3, false}},
      {"inner", {SameConv(2, {8, 8, 8}, 16, 32, 3), 0.3, true}},
      {"inner, kernel 2", {SameConv(2, {8, 8, 8}, 16, 32, 2), 0.3, true}},
      {"inner, narrow", {SameConv(1, {16, 16, 16}, 8, 16, 3), 0.3, true}},
      {"inner, odd extents and channels", {SameConv(1, {5, 4, 7}, 3, 5, 3), 0.3, true}},
      {"inner, narrow, kernel 2", {SameConv(1, {4, 4, 4}, 8, 16, 2), 0.3, true}},
      {"inner of 32 channels", {SameConv(1, {4, 4, 4}, 32, 64, 3), 0.3, true}},
      {"inner of 32 channels, kernel 2", {SameConv(1, {4, 4, 4}, 32, 64, 2), 0.3, true}},
      {"last of a cube of 32", {SameConv(2, {2, 2, 2}, 64, 128, 3), 0.3, true}},
      {"last, wide", {SameConv(2, {2, 2, 2}, 128, 24, 3), 0.3, true}},
      {"last, wide, kernel 2", {SameConv(2, {2, 2, 2}, 128, 24, 2), 0.3, true}},
  };

  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const ConvPoolResult expected = RunConvPool(&reference_, GetParam(), row.shape);
    ExpectSameBlock(GetParam(), row.shape, RunConvPool(backend_.get(), GetParam(), row.shape),
                    expected);

    SCOPED_TRACE("between maps");
    ConvPoolShape maps = row.shape;
    maps.is_map = true;
    if (!maps.wants_dx)
      maps.empty_channels = backend_->StoredChannels(maps.conv.in_channels) - maps.conv.in_channels;
    ExpectSameBlock(GetParam(), maps, RunConvPool(backend_.get(), GetParam(), maps), expected);
  }
}

TEST_P(ConformanceTest, DenseLayersAgree) {
  const struct {
    int64_t rows, in, out;
  } rows[] = {{4, 512, 128}, {8, 128, 64}, {1, 64, 4}, {3, 4096, 128}, {2, 7, 5}};

  for (const auto& row : rows) {
    SCOPED_TRACE(row.in);
    Floats x = DrawFactors(GetParam(), {row.rows, row.in}, 1);
    Floats w = DrawFactors(GetParam(), {row.in, row.out}, 2);
    Floats dy = DrawFactors(GetParam(), {row.rows, row.out}, 3);
    Floats y(dy.shape), dx(x.shape), dw(w.shape);
    Floats expected_y(dy.shape), expected_dx(x.shape), expected_dw(w.shape);

    backend_->DenseForward(x.view(), w.view(), y.view());
    backend_->DenseBackwardData(dy.view(), w.view(), dx.view());
    backend_->DenseBackwardWeights(x.view(), dy.view(), dw.view());
    backend_->Synchronize();
    reference_.DenseForward(x.view(), w.view(), expected_y.view());
    reference_.DenseBackwardData(dy.view(), w.view(), expected_dx.view());
    reference_.DenseBackwardWeights(x.view(), dy.view(), expected_dw.view());

    ExpectClose(y, expected_y, row.in);
    ExpectClose(dx, expected_dx, row.out);
    ExpectClose(dw, expected_dw, row.rows);
  }
}

TEST_P(ConformanceTest, Log1pAgreesOnEveryCount) {
  HostTensor<int16_t> counts({32768});
  for (size_t i = 0; i < counts.values.size(); ++i)
    counts.values[i] = static_cast<int16_t>(i);
  Floats y(counts.shape), expected(counts.shape);

  backend_->Log1p(counts.view(), y.view());
  backend_->Synchronize();
  reference_.Log1p(counts.view(), expected.view());

  ExpectClose(y, expected, 1);
}

TEST_P(ConformanceTest, Log1pMakesMapsOfTheBackendsChannels) {
  HostTensor<int16_t> counts({2, 2, 3, 1, 4});
  for (size_t i = 0; i < counts.values.size(); ++i)
    counts.values[i] = static_cast<int16_t>(i * 7);
  Floats y(counts.shape.WithLast(backend_->StoredChannels(4))), expected(counts.shape);
  std::fill(y.values.begin(), y.values.end(), 9.0F);  // must be overwritten

  backend_->Log1p(counts.view(), y.view());
  backend_->Synchronize();
  reference_.Log1p(counts.view(), expected.view());

  ExpectClose(y, WithChannels(expected, y.shape[4]), 1,
              HasBf16Maps(GetParam()) ? std::ldexp(1, -8) : 0);
}

TEST_P(ConformanceTest, SumsOfSquaresAgree) {
  Floats x = Floats::Random({100'000}, 1), sum({1}), expected({1});

  backend_->SumOfSquares(x.view(), sum.view());
  backend_->Synchronize();
  reference_.SumOfSquares(x.view(), expected.view());

  ExpectClose(sum, expected, x.shape.elements());
}

std::vector<std::string> BackendsToCompare() {
  std::vector<std::string> names = MapBackendsUnderTest();
  std::erase(names, "reference");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Backends, ConformanceTest, ::testing::ValuesIn(BackendsToCompare()),
                         NameOfBackendTest);

}  // namespace
}  // namespace assay
