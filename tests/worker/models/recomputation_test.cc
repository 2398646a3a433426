// Training in less memory: layers that are recomputed change nothing but bytes. The oracle is the
// same training without a limit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "tests/support/status_matchers.h"
#include "tests/worker/models/model_batch.h"
#include "worker/engine/backends/registry.h"
#include "worker/engine/pass.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::StatusIs;

constexpr int64_t kMib = int64_t{1} << 20;

ModelSpec SmallCosmoflow() {
  return {.name = "cosmoflow",
          .cosmoflow = {.batch = 2, .cube_edge = 64, .base_filters = 4, .dropout = 0.5, .l2 = 0.01},
          .options = {.seed = 42}};
}

ModelSpec SmallDeepcam() {
  return {.name = "deepcam",
          .deepcam = {.batch = 2, .height = 64, .width = 64, .base_filters = 8, .middle_blocks = 4},
          .options = {.seed = 5,
                      .optimizer = {.kind = OptimizerOptions::Kind::kLamb, .weight_decay = 0.01},
                      .accumulation = 2}};
}

absl::StatusOr<std::unique_ptr<Trainable>> TryMake(ModelSpec spec, const std::string& backend,
                                                   int64_t limit_bytes) {
  auto made = MakeBackend(backend);
  EXPECT_THAT(made, IsOk());
  spec.memory_limit_bytes = limit_bytes;
  return MakeTrainable(spec, *std::move(made));
}

std::unique_ptr<Trainable> Make(const ModelSpec& spec, const std::string& backend,
                                int64_t limit_bytes) {
  auto model = TryMake(spec, backend, limit_bytes);
  EXPECT_THAT(model, IsOk()) << "limit=" << limit_bytes;
  return *std::move(model);
}

// What the refusal of a limit names as the least.
int64_t LeastMib(const ModelSpec& spec, const std::string& backend) {
  const auto refused = TryMake(spec, backend, kMib);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("1 MiB are too little for training")));
  std::string message(refused.status().message());
  const std::string before = "the least is ";
  message = message.substr(message.find(before) + before.size());
  int64_t least = 0;
  EXPECT_TRUE(absl::SimpleAtoi(message.substr(0, message.find(' ')), &least)) << message;
  return least;
}

std::vector<float> Copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

// Everything that training leaves, and each loss on the way.
struct Outcome {
  std::vector<float> losses, parameters, state, buffers;
  double quality = 0;

  bool operator==(const Outcome&) const = default;
};

// Half of the steps with the first layers frozen, and an evaluation before that.
Outcome Train(Trainable* model, const std::string& frozen) {
  Outcome outcome;
  for (uint64_t step = 0; step < 4; ++step) {
    if (step == 2) {
      const ModelBatch batch(*model, 100);
      const auto sums = model->EvalBatch(batch.view());
      EXPECT_THAT(sums, IsOk());
      outcome.quality = sums->quality;
      EXPECT_THAT(model->FreezeThrough(frozen), IsOk());
    }
    const ModelBatch batch(*model, static_cast<uint32_t>(step));
    const auto loss = model->TrainStep(batch.view(), {.epoch = 0, .step = step}, 0.01,
                                       [](std::span<float>) { return absl::OkStatus(); });
    EXPECT_THAT(loss, IsOk());
    outcome.losses.push_back(*loss);
  }
  outcome.parameters = Copy(model->parameters());
  outcome.state = Copy(model->optimizer_state());
  outcome.buffers = Copy(model->buffers());
  return outcome;
}

struct RecomputationCase {
  const char* name;
  ModelSpec spec;
  const char* backend;
  const char* frozen;
};

class RecomputationTest : public ::testing::TestWithParam<RecomputationCase> {};

TEST_P(RecomputationTest, TrainsTheSameInLessMemory) {
  const auto& [name, spec, backend, frozen] = GetParam();
  const auto free = Make(spec, backend, 0);
  const auto all = static_cast<int64_t>(free->model().training_bytes());
  const int64_t least = LeastMib(spec, backend) * kMib;
  ASSERT_LT(least, all);
  const Outcome expected = Train(free.get(), frozen);

  for (const int64_t limit : {least, (least + all) / 2}) {
    SCOPED_TRACE(absl::StrCat("limit=", limit, " of ", all));
    const auto model = Make(spec, backend, limit);
    EXPECT_LE(static_cast<int64_t>(model->model().training_bytes()), limit);
    EXPECT_GT(model->model().recomputation().segments, 0);
    const Outcome outcome = Train(model.get(), frozen);
    EXPECT_EQ(outcome.losses, expected.losses);
    EXPECT_TRUE(outcome == expected);
  }
}

TEST_P(RecomputationTest, ComputesNothingTwiceWhereThereIsRoom) {
  const auto& [name, spec, backend, frozen] = GetParam();
  const auto free = Make(spec, backend, 0);
  const auto model = Make(spec, backend, int64_t{64} << 30);
  EXPECT_EQ(model->model().recomputation().segments, 0);
  EXPECT_EQ(model->model().training_bytes(), free->model().training_bytes());
}

INSTANTIATE_TEST_SUITE_P(
    Models, RecomputationTest,
    ::testing::Values(RecomputationCase{"CosmoflowReference", SmallCosmoflow(), "reference",
                                        "conv1"},
                      RecomputationCase{"CosmoflowOnednn", SmallCosmoflow(), "onednn", "conv2"},
                      RecomputationCase{"DeepcamReference", SmallDeepcam(), "reference", "conv2"},
                      RecomputationCase{"DeepcamOnednn", SmallDeepcam(), "onednn", "block1"}),
    [](const auto& row) { return std::string(row.param.name); });

// A group of one rank that counts how often its ranks would have to meet.
class CountingGroup : public GroupMean {
 public:
  void Average(const Tensor&) override { ++averages_; }
  int size() const override { return 1; }
  int64_t averages() const { return averages_; }

 private:
  int64_t averages_ = 0;
};

TEST(RecomputationGroupTest, RanksThatNormaliseTogetherMeetNoMoreOften) {
  const ModelSpec spec = SmallDeepcam();
  CountingGroup plain, recomputing;
  const auto free = Make(spec, "onednn", 0);
  const auto model = Make(spec, "onednn", LeastMib(spec, "onednn") * kMib);
  free->set_group(&plain);
  model->set_group(&recomputing);
  EXPECT_TRUE(Train(model.get(), "block1") == Train(free.get(), "block1"));
  EXPECT_EQ(recomputing.averages(), plain.averages());
  EXPECT_GT(plain.averages(), 0);
}

TEST(RecomputationEvaluationTest, ALimitIsForEvaluationToo) {
  ModelSpec spec = SmallDeepcam();
  const int64_t least = LeastMib(spec, "onednn");
  spec.eval_batch = 64;
  const auto refused = TryMake(spec, "onednn", least * kMib);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("evaluation: the latter, in batches of 64, takes")));
}

}  // namespace
}  // namespace assay
