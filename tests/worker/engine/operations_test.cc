// What single operations mean, by examples small enough to check by hand, on every backend.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/backends_under_test.h"
#include "tests/worker/engine/host_tensor.h"
#include "worker/engine/backend.h"
#include "worker/engine/backends/registry.h"

namespace assay {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

class OperationsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Backend>> backend = MakeBackendUnderTest(GetParam());
    if (absl::IsUnavailable(backend.status())) GTEST_SKIP() << backend.status();
    ASSERT_THAT(backend, IsOk());
    backend_ = *std::move(backend);
  }

  // Convolves a line of four voxels, one channel, with a kernel that is `taps` along W only.
  std::vector<float> ConvolveLine(std::vector<float> line, std::vector<float> taps) {
    const auto width = static_cast<int64_t>(line.size());
    const auto kernel = static_cast<int64_t>(taps.size());
    const ConvShape shape = SameConv(1, {1, 1, width}, 1, 1, kernel);
    HostTensor<float> x(shape.x(), std::move(line)), w(shape.w()), y(shape.y());
    // The plane in D and line in H of the kernel that fall on the input, not on padding.
    const int64_t centre = (kernel - 1) / 2;
    for (size_t i = 0; i < taps.size(); ++i)
      w.values[static_cast<size_t>((centre * kernel + centre) * kernel) + i] = taps[i];
    auto convolution = backend_->MakeConvolution(shape);
    EXPECT_THAT(convolution, IsOk());
    (*convolution)->Forward(x.view(), w.view(), y.view());
    backend_->Synchronize();
    return y.values;
  }

  std::unique_ptr<Backend> backend_;
};

TEST_P(OperationsTest, SamePaddingOfKernelThreeIsSymmetricAndDoesNotFlip) {
  EXPECT_THAT(ConvolveLine({1, 2, 3, 4}, {100, 10, 1}), ElementsAre(12, 123, 234, 340));
}

TEST_P(OperationsTest, SamePaddingOfKernelTwoIsBehind) {
  EXPECT_THAT(ConvolveLine({1, 2, 3, 4}, {10, 1}), ElementsAre(12, 23, 34, 40));
}

// Of two samples of 3 x 3 lines of two numbers each, the lines around the last corner.
TEST_P(OperationsTest, ABoxIsTakenOutAndPutBackInOrder) {
  HostTensor<float> whole({2, 3, 3, 1, 2}), packed({16}), other(whole.shape);
  for (size_t i = 0; i < whole.values.size(); ++i)
    whole.values[i] = static_cast<float>(i);
  const Box box = {.begin = {1, 1}, .extent = {2, 2}};

  backend_->TakeBox(whole.view(), box, packed.view());
  backend_->PutBox(packed.view(), box, other.view());
  backend_->Synchronize();

  EXPECT_THAT(packed.values,
              ElementsAre(8, 9, 10, 11, 14, 15, 16, 17, 26, 27, 28, 29, 32, 33, 34, 35));
  EXPECT_THAT(other.values,
              ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 8, 9, 10, 11, 0, 0, 14, 15, 16, 17,  //
                          0, 0, 0, 0, 0, 0, 0, 0, 26, 27, 28, 29, 0, 0, 32, 33, 34, 35));
}

TEST_P(OperationsTest, ConvolutionUsesNewWeightsAfterTheyChanged) {
  const ConvShape shape = SameConv(1, {1, 1, 1}, 1, 1, 3);
  HostTensor<float> x(shape.x(), {1}), w(shape.w()), y(shape.y());
  auto convolution = backend_->MakeConvolution(shape);
  ASSERT_THAT(convolution, IsOk());

  w.values[13] = 5;  // the centre of 3x3x3
  (*convolution)->Forward(x.view(), w.view(), y.view());
  w.values[13] = 6;
  (*convolution)->WeightsChanged();
  (*convolution)->Forward(x.view(), w.view(), y.view());

  EXPECT_THAT(y.values, ElementsAre(6));
}

TEST_P(OperationsTest, PoolingGivesTiesToTheFirstInScanOrder) {
  constexpr int64_t kChannels = 8;
  HostTensor<float> x({1, 2, 2, 2, kChannels}), bias({kChannels}), y({1, 1, 1, 1, kChannels});
  HostTensor<float> dx(x.shape), dbias(bias.shape), dy(y.shape);
  HostTensor<uint8_t> code(y.shape);
  // Channel c has its maximum at every position from c on.
  for (size_t position = 0; position < 8; ++position)
    for (size_t c = 0; c < kChannels; ++c)
      x.values[position * kChannels + c] = position >= c ? 2.0F : 1.0F;
  dy.values.assign(kChannels, 3.0F);

  backend_->PoolForward(x.view(), bias.view(), 0.3, y.view(), code.view());
  backend_->PoolBackward(dy.view(), code.view(), 0.3, dx.view(), dbias.view());

  EXPECT_THAT(y.values, Each(2.0F));
  EXPECT_THAT(dbias.values, Each(3.0F));
  for (size_t position = 0; position < 8; ++position)
    for (size_t c = 0; c < kChannels; ++c)
      EXPECT_EQ(dx.values[position * kChannels + c], position == c ? 3.0F : 0.0F)
          << "position " << position << " channel " << c;
}

TEST_P(OperationsTest, PoolingAddsBiasAndLeaks) {
  HostTensor<float> x({1, 2, 2, 2, 2}, {-8, 8, -7, 7, -6, 6, -5, 5, -4, 4, -3, 3, -2, 2, -1, 1});
  HostTensor<float> bias({2}, {-1, 1}), dbias({2}), y({1, 1, 1, 1, 2}), dy({1, 1, 1, 1, 2}, {1, 1});
  HostTensor<float> dx(x.shape);
  HostTensor<uint8_t> code(y.shape);

  backend_->PoolForward(x.view(), bias.view(), 0.5, y.view(), code.view());
  backend_->PoolBackward(dy.view(), code.view(), 0.5, dx.view(), dbias.view());

  EXPECT_THAT(y.values, ElementsAre(-1, 9));        // 0.5 * (-1 - 1); 8 + 1
  EXPECT_THAT(code.values, ElementsAre(7, 8 | 0));  // last and first position; positive
  EXPECT_THAT(dbias.values, ElementsAre(0.5, 1));
  EXPECT_EQ(dx.values[14], 0.5);
  EXPECT_EQ(dx.values[1], 1);
}

TEST_P(OperationsTest, Log1pTakesTheNaturalLogarithmOfCountPlusOne) {
  HostTensor<int16_t> counts({5}, {0, 1, 2, 99, 32767});
  HostTensor<float> y({5});

  backend_->Log1p(counts.view(), y.view());

  EXPECT_THAT(y.values, ElementsAre(0, 0.69314718F, 1.09861229F, 4.60517019F, 10.39720771F));
}

TEST_P(OperationsTest, DropoutScalesWhatItKeepsAndKeepsTheRightShare) {
  constexpr int64_t kCount = 100'000;
  HostTensor<float> y({kCount}), scale({kCount});
  y.values.assign(kCount, 1);

  backend_->Dropout({.stream = Stream(3, Purpose::kDropout), .first_index = 5, .rate = 0.2},
                    y.view(), scale.view());

  int64_t kept = 0;
  for (const float value : y.values) {
    ASSERT_TRUE(value == 0 || value == 1.25F) << value;
    kept += value != 0 ? 1 : 0;
  }
  // Five standard deviations of a binomial are 632.
  EXPECT_NEAR(static_cast<double>(kept), 0.8 * kCount, 632);
  EXPECT_EQ(scale.values, y.values);
}

TEST_P(OperationsTest, SquaredErrorIsTheMeanOverBatchAndOutputs) {
  HostTensor<float> prediction({2, 2}, {1, 2, 3, 4}), target({2, 2}, {0, 0, 3, 2});
  HostTensor<float> gradient({2, 2}), loss({1});

  backend_->SquaredError(prediction.view(), target.view(), gradient.view(), loss.view());

  EXPECT_THAT(loss.values, ElementsAre(2.25));  // (1 + 4 + 0 + 4) / 4
  EXPECT_THAT(gradient.values, ElementsAre(0.5, 1, 0, 1));
}

// One step of Keras' SGD, computed in double from its formula, with a rate that changes: a
// velocity that kept the rate outside, as PyTorch does, would differ from the second step on.
TEST_P(OperationsTest, SgdFollowsKerasWhenTheRateChanges) {
  const int64_t count = 1000;
  HostTensor<float> w = HostTensor<float>::Random({count}, 1), v({count});
  std::vector<double> expected_w(w.values.begin(), w.values.end()), expected_v(count);
  const double rates[] = {0.1, 0.02, 0.5};
  const double l2 = 0.01;

  for (uint32_t step = 0; step < 3; ++step) {
    HostTensor<float> g = HostTensor<float>::Random({count}, 2 + step);
    backend_->Sgd({.learning_rate = rates[step], .momentum = 0.9, .l2 = l2}, w.view(), g.view(),
                  v.view());
    for (size_t i = 0; i < expected_w.size(); ++i) {
      const double gradient = double{g.values[i]} + 2 * l2 * expected_w[i];
      expected_v[i] = 0.9 * expected_v[i] - rates[step] * gradient;
      expected_w[i] += expected_v[i];
    }
  }

  // Values are O(1); three steps of rounding to float.
  for (size_t i = 0; i < expected_w.size(); ++i)
    ASSERT_NEAR(w.values[i], expected_w[i], 5e-7) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(Backends, OperationsTest, ::testing::ValuesIn(BackendsUnderTest()),
                         NameOfBackendTest);

TEST(BackendRegistryTest, NamesTheBackendsItHasWhenAskedForAnother) {
  EXPECT_THAT(MakeBackend("abacus").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("onednn, onednn-bf16, reference")));
}

}  // namespace
}  // namespace assay
