// What rounding factors to bfloat16 costs, on the CPU backend that does it, against sums in double
// of the numbers that were not rounded.
//
// Two factors are each off by at most 2^-9 of their value, so a product by little more than 2^-8.
// In a sum of random terms these errors cancel as the terms do: of the largest result no difference
// may exceed 5e-3, and the whole result's (in the 2-norm) must stay below 3e-3.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/host_tensor.h"
#include "worker/engine/backend.h"
#include "worker/engine/backends/onednn/avx512_bf16.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/bfloat16.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

template <typename T>
using Numbers = HostTensor<T>;

template <typename T>
Numbers<T> Draw(const Shape& shape, uint32_t salt) {
  Numbers<T> numbers(shape);
  const Numbers<float> floats = Numbers<float>::Random(shape, salt);
  std::copy(floats.values.begin(), floats.values.end(), numbers.values.begin());
  return numbers;
}

void ExpectRounded(const Numbers<float>& actual, const Numbers<double>& expected) {
  double scale = 0, largest = 0, squares = 0, error_squares = 0;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double error = double{actual.values[i]} - expected.values[i];
    scale = std::max(scale, std::abs(expected.values[i]));
    largest = std::max(largest, std::abs(error));
    squares += expected.values[i] * expected.values[i];
    error_squares += error * error;
  }
  EXPECT_LE(largest, 5e-3 * scale);
  EXPECT_LE(std::sqrt(error_squares), 3e-3 * std::sqrt(squares));
  // If nothing was rounded, the backend is not what it says.
  EXPECT_GT(std::sqrt(error_squares), 1e-5 * std::sqrt(squares));
}

class Bf16FactorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Backend>> backend = MakeBackend("onednn-bf16");
    if (absl::IsUnavailable(backend.status())) GTEST_SKIP() << backend.status();
    ASSERT_THAT(backend, IsOk());
    backend_ = *std::move(backend);
  }

  std::unique_ptr<Backend> backend_;
  ReferenceBackend<double> reference_;
};

TEST_F(Bf16FactorsTest, DenseLayersAreFloat32) {
  const Shape x_shape = {8, 512}, w_shape = {512, 128}, y_shape = {8, 128};
  Numbers<float> x = Draw<float>(x_shape, 1), w = Draw<float>(w_shape, 2), y(y_shape);
  Numbers<double> x_wide = Draw<double>(x_shape, 1), w_wide = Draw<double>(w_shape, 2);
  Numbers<double> expected(y_shape);

  backend_->DenseForward(x.view(), w.view(), y.view());
  reference_.DenseForward(x_wide.view(), w_wide.view(), expected.view());

  for (size_t i = 0; i < y.values.size(); ++i)
    EXPECT_NEAR(double{y.values[i]}, expected.values[i], 1e-4) << i;
}

template <typename T>
struct BlockResults {
  Numbers<T> y, dw, dbias, dx;
  HostTensor<uint8_t> code;
};

template <typename T>
BlockResults<T> RunBlock(Backend* backend, const ConvPoolShape& shape) {
  Numbers<T> x = Draw<T>(shape.conv.x(), 1), w = Draw<T>(shape.conv.w(), 2);
  Numbers<T> bias = Draw<T>({shape.conv.out_channels}, 3), dy = Draw<T>(shape.y(), 4);
  BlockResults<T> r = {Numbers<T>(dy.shape), Numbers<T>(w.shape), Numbers<T>(bias.shape),
                       Numbers<T>(x.shape), HostTensor<uint8_t>(dy.shape)};
  auto block = backend->MakeConvPool(shape);
  EXPECT_THAT(block, IsOk());
  HostTensor<uint8_t> scratch({static_cast<int64_t>((*block)->scratch_bytes() + 64)});
  auto* const start =
      scratch.values.data() + 64 - reinterpret_cast<uintptr_t>(scratch.values.data()) % 64;
  const ConvPoolTensors tensors = {x.view(),   w.view(),      bias.view(),
                                   r.y.view(), r.code.view(), start};
  (*block)->Forward(tensors);
  (*block)->Backward(tensors, dy.view(), {r.dw.view(), r.dbias.view(), r.dx.view()});
  return r;
}

// Rounding changes which of a window's outputs is the largest where two are about as large: there
// the gradient goes to another position, which single elements show and the whole hardly.
TEST_F(Bf16FactorsTest, FusedBlocksChooseOtherMaximaInFewWindows) {
  const ConvPoolShape shape = {SameConv(2, {16, 16, 16}, 16, 32, 3), 0.3, true};
  const auto actual = RunBlock<float>(backend_.get(), shape);
  const auto expected = RunBlock<double>(&reference_, shape);
  size_t others = 0;
  for (size_t i = 0; i < expected.code.values.size(); ++i)
    others += actual.code.values[i] != expected.code.values[i] ? 1 : 0;
  EXPECT_LE(others, expected.code.values.size() / 50);
  ExpectRounded(actual.y, expected.y);
  const auto relative_error = [](const Numbers<float>& a, const Numbers<double>& b) {
    double squares = 0, errors = 0;
    for (size_t i = 0; i < b.values.size(); ++i) {
      squares += b.values[i] * b.values[i];
      errors += std::pow(double{a.values[i]} - b.values[i], 2);
    }
    return std::sqrt(errors / squares);
  };
  EXPECT_LE(relative_error(actual.dw, expected.dw), 0.15);
  EXPECT_LE(relative_error(actual.dx, expected.dx), 0.15);
  EXPECT_LE(relative_error(actual.dbias, expected.dbias), 0.05);
}

TEST_F(Bf16FactorsTest, CastsAsTheTypeRounds) {
  std::vector<float> values = {
      0.0F,        -0.0F,     1.0F,    1.00390625F,
      1.01171875F, -3.14159F, 3.4e38F, std::numeric_limits<float>::infinity(),
      1e-30F};
  for (size_t i = 0; i < 40; ++i)
    values.push_back(std::sin(static_cast<float>(i)));
  std::vector<Bfloat16> rounded(values.size());

  CastToBf16(values, rounded.data());

  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(rounded[i].bits, Bfloat16(values[i]).bits) << values[i];
}

}  // namespace
}  // namespace assay
