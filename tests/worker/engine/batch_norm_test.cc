// What batch normalisation keeps and how ranks share it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/host_tensor.h"
#include "worker/engine/arena.h"
#include "worker/engine/backends/reference/reference_backend.h"
#include "worker/engine/map_layers.h"

namespace assay {
namespace {

using testing::IsOk;

using Doubles = HostTensor<double>;

// A layer of two channels with everything it needs.
struct Norm {
  Norm(Backend* backend, const Shape& input)
      : layer(backend, input, {.name = "norm"}), arena(backend, 64) {
    size_t scratch = 0;
    EXPECT_THAT(layer.Plan({&arena, &scratch}, true), IsOk());
    for (Parameter* parameter : layer.parameters()) {
      arena.Reserve(parameter->shape, DType::kFloat64, &parameter->value);
      arena.Reserve(parameter->shape, DType::kFloat64, &parameter->gradient);
    }
    for (Buffer* buffer : layer.buffers())
      arena.Reserve(buffer->shape, DType::kFloat64, &buffer->value);
    EXPECT_THAT(arena.Commit(), IsOk());
    for (Parameter* parameter : layer.parameters())
      std::ranges::fill(parameter->value.Span<double>(), parameter->init_value);
    for (Buffer* buffer : layer.buffers())
      std::ranges::fill(buffer->value.Span<double>(), buffer->init_value);
  }

  std::span<double> running(size_t which) { return layer.buffers()[which]->value.Span<double>(); }

  BatchNormLayer layer;
  Arena arena;
};

TEST(BatchNormTest, RunningVarianceIsUnbiasedAndMovesByATenth) {
  ReferenceBackend<double> backend;
  const Shape shape = {1, 2, 2, 1};
  Norm norm(&backend, shape);
  Doubles x(shape, {1, 2, 3, 6});  // mean 3, biased variance 3.5, unbiased 14/3

  const Tensor y = norm.layer.Forward(x.view(), {.is_training = true});

  EXPECT_NEAR(norm.running(0)[0], 0.1 * 3, 1e-12);
  EXPECT_NEAR(norm.running(1)[0], 0.9 + 0.1 * 14 / 3, 1e-12);
  EXPECT_NEAR(y.As<double>()[3], 3 / std::sqrt(3.5 + 1e-5), 1e-12);
}

TEST(BatchNormTest, EvaluationUsesTheRunningStatisticsAndLeavesThemAlone) {
  ReferenceBackend<double> backend;
  const Shape shape = {1, 2, 2, 1};
  Norm norm(&backend, shape);
  norm.running(0)[0] = 2;
  norm.running(1)[0] = 4;
  Doubles x(shape, {1, 2, 3, 6});

  const Tensor y = norm.layer.Forward(x.view(), {.is_training = false});

  EXPECT_NEAR(y.As<double>()[3], 4 / std::sqrt(4 + 1e-5), 1e-12);
  EXPECT_EQ(norm.running(0)[0], 2);
  EXPECT_EQ(norm.running(1)[0], 4);
}

// Stands for the ranks of a group within one process: each rank in turn contributes what the whole
// script of averages says. Ranks run one after the other, so a first round collects each rank's
// numbers and later rounds see the means of those collected.
class ScriptedGroup : public GroupMean {
 public:
  explicit ScriptedGroup(size_t ranks) : ranks_(ranks) {}

  void BeginRank(size_t rank) { rank_ = rank, call_ = 0; }
  void Average(const Tensor& values) override {
    const std::span<double> span = values.Span<double>();
    if (calls_.size() <= call_) calls_.resize(call_ + 1, std::vector<std::vector<double>>(ranks_));
    std::vector<std::vector<double>>& seen = calls_[call_++];
    seen[rank_].assign(span.begin(), span.end());
    for (size_t i = 0; i < span.size(); ++i) {
      double sum = 0;
      for (const std::vector<double>& one : seen)
        sum += one.empty() ? 0 : one[i];
      span[i] = sum / static_cast<double>(ranks_);
    }
  }
  int size() const override { return static_cast<int>(ranks_); }

 private:
  const size_t ranks_;
  size_t rank_ = 0, call_ = 0;
  std::vector<std::vector<std::vector<double>>> calls_;  // of each call, of each rank
};

// Two ranks of a group behave as one rank with both batches.
TEST(BatchNormTest, AGroupOfTwoEqualsTheBatchesPutTogether) {
  ReferenceBackend<double> backend;
  const Shape half = {2, 2, 3, 2}, whole = {4, 2, 3, 2};
  const size_t count = static_cast<size_t>(half.elements());
  Doubles x = Doubles::Random(whole, 1), dy = Doubles::Random(whole, 2);
  Norm together(&backend, whole);
  const Tensor y = together.layer.Forward(x.view(), {.is_training = true});
  const std::vector<double> expected_y(y.As<double>(), y.As<double>() + y.elements());
  Doubles expected_dx = dy;
  together.layer.Backward(x.view(), expected_dx.view(), {.is_training = true});

  Norm ranks[2] = {Norm(&backend, half), Norm(&backend, half)};
  ScriptedGroup group(2);
  std::vector<double> actual_y[2], actual_dx[2];
  // Each call of Average needs what all ranks pass to it, and that depends on the calls before: as
  // many rounds as there are calls in a step settle all of them.
  for (int round = 0; round < 5; ++round) {
    for (size_t rank = 0; rank < 2; ++rank) {
      group.BeginRank(rank);
      const size_t first = rank * count;
      Doubles part(half, {x.values.begin() + static_cast<ptrdiff_t>(first),
                          x.values.begin() + static_cast<ptrdiff_t>(first + count)});
      Doubles gradient(half, {dy.values.begin() + static_cast<ptrdiff_t>(first),
                              dy.values.begin() + static_cast<ptrdiff_t>(first + count)});
      for (Buffer* buffer : ranks[rank].layer.buffers())
        std::ranges::fill(buffer->value.Span<double>(), buffer->init_value);
      const Pass pass = {.is_training = true, .group = &group};
      const Tensor out = ranks[rank].layer.Forward(part.view(), pass);
      actual_y[rank].assign(out.As<double>(), out.As<double>() + out.elements());
      ranks[rank].layer.Backward(part.view(), gradient.view(), pass);
      actual_dx[rank] = gradient.values;
    }
  }

  for (size_t i = 0; i < 2 * count; ++i) {
    ASSERT_NEAR(actual_y[i / count][i % count], expected_y[i], 1e-12) << i;
    ASSERT_NEAR(actual_dx[i / count][i % count], expected_dx.values[i], 1e-12) << i;
  }
  for (size_t which = 0; which < 2; ++which)
    for (size_t c = 0; c < 2; ++c)
      EXPECT_NEAR(ranks[1].running(which)[c], together.running(which)[c], 1e-12);
}

}  // namespace
}  // namespace assay
