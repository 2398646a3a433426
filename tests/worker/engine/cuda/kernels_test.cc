#include "worker/engine/backends/cuda/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "tests/worker/engine/host_tensor.h"
#include "tests/worker/engine/staged_backend.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/reference/reference_backend.h"

namespace assay::cuda {
namespace {

using assay::testing::IsOk;
using Floats = HostTensor<float>;

float Rounded(float value) {
  return float(Bfloat16(value));
}

TEST(Bfloat16Test, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(Rounded(1.0F), 1.0F);
  EXPECT_EQ(Rounded(-0.15625F), -0.15625F);
  EXPECT_EQ(Rounded(1.0F + 0x1p-8F), 1.0F);                 // a tie: down to even
  EXPECT_EQ(Rounded(1.0F + 0x1p-7F + 0x1p-8F), 1.015625F);  // a tie: up to even
  EXPECT_EQ(Rounded(1.0F + 0x1p-8F + 0x1p-20F), 1.0078125F);
  EXPECT_EQ(Rounded(3.4e38F), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(Rounded(std::numeric_limits<float>::quiet_NaN())));
}

// The vector of Random123's known answers for ten rounds, as a constant expression: what a GPU
// runs.
static_assert(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(KernelsTest, DropoutDrawsTheReferenceBackendsNumbers) {
  const DropoutMask mask = {
      .stream = Stream(3, Purpose::kDropout, 2, 9), .first_index = uint64_t{5} << 40, .rate = 0.3};
  Floats y = Floats::Random({7, 300}, 1), scale(y.shape);
  Floats expected = y, expected_scale(y.shape);

  Dropout kernel = {.stream = mask.stream,
                    .first_index = mask.first_index,
                    .rate = mask.rate,
                    .kept = static_cast<float>(1 / 0.7),
                    .y = y.values.data(),
                    .scale = scale.values.data(),
                    .count = y.shape.elements()};
  for (int64_t i = kernel.count; i-- > 0;)
    kernel(i);
  ReferenceBackend<float>().Dropout(mask, expected.view(), expected_scale.view());

  EXPECT_EQ(scale.values, expected_scale.values);
  EXPECT_EQ(y.values, expected.values);
}

// Also where a tensor has more than 2^31 elements, and by one.
TEST(PositionTest, DivisionsByProductsAreExact) {
  for (const int64_t divisor : {1, 2, 3, 7, 32, 45, 91, 128, 728, 1152, 65'535, 884'736, 8'388'607})
    for (const int64_t near :
         {int64_t{0}, divisor, 7 * divisor, (int64_t{1} << 31) / divisor * divisor,
          (int64_t{1} << 32) / divisor * divisor, ((int64_t{1} << 40) - 1) / divisor * divisor})
      for (const int64_t n : {near, near + 1, near - 1}) {
        if (n < 0) continue;
        const int64_t quotient = Divisor(divisor).Quotient(n);
        EXPECT_EQ(quotient, n / divisor) << n << " / " << divisor;
        EXPECT_EQ(Divisor(divisor).Rest(n, quotient), n % divisor) << n << " / " << divisor;
      }
}

TEST(PositionTest, FindsElementsBeyond32Bits) {
  const Position p = {300, 5, 127, 101, 31};  // in (any, 6, 128, 128, 33)
  const int64_t i = (((p.batch * 6 + p.d) * 128 + p.h) * 128 + p.w) * 33 + p.c;
  const Position first = PositionOf(i + (int64_t{1} << 20) * 6 * 128 * 128 * 33, 6, 128, 128, 33);
  EXPECT_EQ(first.batch, p.batch + (1 << 20));
  EXPECT_EQ(first.d, p.d);
  EXPECT_EQ(first.h, p.h);
  EXPECT_EQ(first.w, p.w);
  EXPECT_EQ(first.c, p.c);
}

// Small integers, whose products and sums are exact in bfloat16.
Floats Integers(const Shape& shape, uint32_t salt, int least, int most) {
  Floats tensor(shape);
  const Stream stream(11, Purpose::kTest, salt);
  for (size_t i = 0; i < tensor.values.size(); ++i)
    tensor.values[i] = static_cast<float>(
        least + static_cast<int>(stream.Below(i, static_cast<uint32_t>(most - least + 1))));
  return tensor;
}

struct Block {
  Floats y, dw, dbias, dx;
  HostTensor<uint8_t> code;
};

Block RunBlock(Backend* backend, const ConvPoolShape& shape) {
  Floats x = Integers(shape.conv.x(), 1, 0, 1), w = Integers(shape.conv.w(), 2, -1, 1);
  Floats bias = Integers({shape.conv.out_channels}, 3, -2, 2), dy = Integers(shape.y(), 4, 0, 1);
  Block result = {Floats(shape.y()), Floats(w.shape), Floats(bias.shape), Floats(x.shape),
                  HostTensor<uint8_t>(shape.y())};
  auto block = backend->MakeConvPool(shape);
  EXPECT_THAT(block, IsOk());
  HostTensor<uint8_t> scratch({static_cast<int64_t>((*block)->scratch_bytes())});
  const ConvPoolTensors tensors = {x.view(),        w.view(),           bias.view(),
                                   result.y.view(), result.code.view(), scratch.view().data};
  (*block)->Forward(tensors);
  (*block)->Backward(tensors, dy.view(), {result.dw.view(), result.dbias.view(), result.dx.view()});
  return result;
}

TEST(KernelsTest, BlocksInBf16AgreeWhereTheseAreExact) {
  absl::StatusOr<std::unique_ptr<CudaBackend>> made = CudaBackend::Make(
      std::make_unique<HostDevice>(), {.name = "cuda-bf16", .precision = Precision::kBfloat16});
  ASSERT_THAT(made, IsOk());
  const std::unique_ptr<Backend> backend = StageThroughHost(*std::move(made));
  ReferenceBackend<float> reference;
  for (const int64_t kernel : {2, 3}) {
    SCOPED_TRACE(kernel);
    const ConvPoolShape shape = {SameConv(2, {4, 6, 4}, 3, 8, kernel), 1, true};

    const Block actual = RunBlock(backend.get(), shape);
    const Block expected = RunBlock(&reference, shape);

    EXPECT_EQ(actual.y.values, expected.y.values);
    EXPECT_EQ(actual.code.values, expected.code.values);
    EXPECT_EQ(actual.dw.values, expected.dw.values);
    EXPECT_EQ(actual.dbias.values, expected.dbias.values);
    EXPECT_EQ(actual.dx.values, expected.dx.values);
  }
}

TEST(KernelsTest, TransposesOfAnyWidthMoveEachNumberOnce) {
  for (const auto& [rows, columns] : {std::pair(5, 8), {7, 19}, {1, 3}, {16, 1}}) {
    Floats x = Floats::Random({rows, columns}, 1), y({columns + 1, rows});
    const auto transpose =
        Transpose<float, float>::Of(x.values.data(), y.values.data(), rows, columns);
    for (int64_t i = 0; i < transpose.count; ++i)
      transpose(i);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        EXPECT_EQ(y.values[static_cast<size_t>(column * rows + row)],
                  x.values[static_cast<size_t>(row * columns + column)]);
    for (int64_t row = 0; row < rows; ++row)  // behind the end
      EXPECT_EQ(y.values[static_cast<size_t>(columns * rows + row)], 0);
  }
}

// How a block of threads sums: each takes a part, whatever their number.
TEST(KernelsTest, PartsOfAFoldAddUpToTheWhole) {
  std::vector<double> x(1000);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>(i * i % 97);
  std::vector<float> y(4);
  const Fold<Partials<double>, Scaled<float>> fold = {.source = {x.data()},
                                                      .sums = nullptr,
                                                      .finish = {y.data(), 1},
                                                      .rows = 250,
                                                      .results = 1,
                                                      .columns = 4,
                                                      .count = 4};
  for (int64_t i = 0; i < fold.count; ++i) {
    double sum = 0;
    for (int64_t lane = 0; lane < 256; ++lane)
      sum += fold.Part(i, lane, 256);
    fold(i);
    EXPECT_EQ(static_cast<float>(sum), y[static_cast<size_t>(i)]);
  }
}

}  // namespace
}  // namespace assay::cuda
