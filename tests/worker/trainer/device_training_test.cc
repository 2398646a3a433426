// Training by several ranks whose devices, faked on the CPU, speak to each other, against ranks
// that do the same through the host.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/comm/memory_world.h"
#include "tests/worker/comm/world.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "tests/worker/models/model_batch.h"
#include "worker/comm/ring.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/trainable.h"
#include "worker/models/registry.h"
#include "worker/trainer/device_ranks.h"
#include "worker/trainer/rank_group.h"

namespace assay {
namespace {

using comm::testing::OnEveryRank;
using comm::testing::Soon;
using ::testing::FloatNear;
using testing::IsOk;
using ::testing::Pointwise;

constexpr int kSteps = 4;

// A run of several ranks.
struct RunSetup {
  const char* name;
  ModelSpec spec;
  int ranks = 2;
  int group = 1;               // ranks that normalise together
  const char* frozen = "";     // the layer up to which nothing is trained after two steps
  float tolerance = 1e-5F;     // sums in another order
  int64_t bucket_bytes = 512;  // small, so that there are many

  bool has_groups() const { return group > 1; }
};

void PrintTo(const RunSetup& setup, std::ostream* out) {
  *out << setup.name;
}

struct Outcome {
  std::vector<float> losses, parameters;
  EvalSums evaluation;
  AverageCounts counts;
  int host_reductions = 0;
  int graphs = 0, launches = 0;
};

// One rank of a run.
class RankUnderTest {
 public:
  RankUnderTest(const RunSetup& setup, comm::Collective* comm)
      : setup_(setup), comm_(comm), group_(comm, setup.group, Soon) {}

  // On a device that speaks to the others'.
  Outcome OnDevice(int64_t bucket_bytes) {
    const cuda::HostDevice* const device = Make(bucket_bytes);
    EXPECT_THAT(JoinDeviceRanks(model_->reducer().device(), setup_.group, comm_, &clock_,
                                absl::Seconds(60)),
                IsOk());
    group_.UseDevice(model_->reducer().device());
    Outcome outcome = Train();
    outcome.graphs = device->graphs();
    outcome.launches = device->launches();
    return outcome;
  }

  Outcome ThroughHost() {
    Make(0);
    return Train();
  }

 private:
  // Returns the device, which lives as long as the model.
  const cuda::HostDevice* Make(int64_t bucket_bytes) {
    auto device = std::make_unique<cuda::HostDevice>();
    const cuda::HostDevice* const watched = device.get();
    auto backend = cuda::CudaBackend::Make(std::move(device), {});
    EXPECT_THAT(backend, IsOk());
    ModelSpec spec = setup_.spec;
    spec.options.rank = static_cast<uint32_t>(comm_->rank());
    spec.options.reduction.bucket_bytes = bucket_bytes;
    auto model = MakeTrainable(spec, *std::move(backend));
    EXPECT_THAT(model, IsOk());
    model_ = *std::move(model);
    if (setup_.has_groups()) model_->set_group(&group_);
    return watched;
  }

  Outcome Train() {
    Outcome outcome;
    for (uint64_t step = 0; step < kSteps; ++step) {
      if (step == 2 && *setup_.frozen != '\0') {
        EXPECT_THAT(model_->FreezeThrough(setup_.frozen), IsOk());
      }
      const ModelBatch batch(*model_, static_cast<uint32_t>(comm_->rank()));
      const auto loss = model_->TrainStep(batch.view(), {.epoch = 0, .step = step}, 0.01,
                                          [&](std::span<float> gradients) {
                                            ++outcome.host_reductions;
                                            return comm::AllReduceMean(comm_, gradients, Soon());
                                          });
      EXPECT_THAT(loss, IsOk());
      outcome.losses.push_back(loss.value_or(0));
    }
    const ModelBatch batch(*model_);
    outcome.evaluation = model_->EvalBatch(batch.view()).value_or(EvalSums{.quality = -1});
    const std::span<float> parameters = model_->parameters();
    outcome.parameters.assign(parameters.begin(), parameters.end());
    outcome.counts = model_->reducer().counts();
    EXPECT_THAT(comm_->Close(Soon()), IsOk());
    return outcome;
  }

  const RunSetup& setup_;
  comm::Collective* const comm_;
  const RealClock clock_;
  RankGroup group_;
  std::unique_ptr<Trainable> model_;
};

template <typename Run>
std::vector<Outcome> OnRanks(const RunSetup& setup, const Run& run) {
  const RealClock clock;
  const auto world = comm::OpenMemoryWorld(setup.ranks, &clock);
  std::vector<Outcome> outcomes(static_cast<size_t>(setup.ranks));
  OnEveryRank(world, [&](comm::Collective* comm) {
    RankUnderTest rank(setup, comm);
    outcomes[static_cast<size_t>(comm->rank())] = run(&rank);
  });
  return outcomes;
}

// Relative to the length of what is expected.
double Distance(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double difference = 0, length = 0;
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    difference += std::pow(double{actual[i]} - double{expected[i]}, 2);
    length += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / length);
}

class DeviceTrainingTest : public ::testing::TestWithParam<RunSetup> {};

TEST_P(DeviceTrainingTest, FollowsRanksThatSpeakThroughTheHost) {
  const RunSetup& setup = GetParam();

  const std::vector<Outcome> actual =
      OnRanks(setup, [&](RankUnderTest* rank) { return rank->OnDevice(setup.bucket_bytes); });

  const std::vector<Outcome> expected =
      OnRanks(setup, [](RankUnderTest* rank) { return rank->ThroughHost(); });
  for (size_t rank = 0; rank < actual.size(); ++rank) {
    SCOPED_TRACE(rank);
    EXPECT_THAT(actual[rank].losses, Pointwise(FloatNear(setup.tolerance), expected[rank].losses));
    EXPECT_LT(Distance(actual[rank].parameters, expected[rank].parameters), setup.tolerance);
    EXPECT_NEAR(actual[rank].evaluation.loss, expected[rank].evaluation.loss, setup.tolerance);
    EXPECT_EQ(actual[rank].parameters, actual[0].parameters) << "the ranks have drifted apart";
    EXPECT_EQ(actual[rank].host_reductions, 0);
    EXPECT_EQ(expected[rank].host_reductions, kSteps / setup.spec.options.accumulation);
  }
}

// Means are the same numbers however the vector is cut, where they are taken number by number.
TEST_P(DeviceTrainingTest, BucketsGiveTheBitsOfOneReduction) {
  const RunSetup& setup = GetParam();

  const std::vector<Outcome> cut =
      OnRanks(setup, [&](RankUnderTest* rank) { return rank->OnDevice(setup.bucket_bytes); });
  const std::vector<Outcome> flat =
      OnRanks(setup, [](RankUnderTest* rank) { return rank->OnDevice(0); });

  for (size_t rank = 0; rank < cut.size(); ++rank) {
    EXPECT_EQ(cut[rank].losses, flat[rank].losses);
    EXPECT_EQ(cut[rank].parameters, flat[rank].parameters);
    EXPECT_EQ(cut[rank].counts.bytes, flat[rank].counts.bytes);
    EXPECT_EQ(flat[rank].counts.overlapped_bytes, 0);
    EXPECT_EQ(flat[rank].counts.averages, kSteps / setup.spec.options.accumulation);
    if (setup.spec.options.accumulation > 1) continue;  // only the sum is averaged
    EXPECT_GT(cut[rank].counts.averages, 2 * flat[rank].counts.averages);
    EXPECT_GT(cut[rank].counts.overlapped_bytes, cut[rank].counts.bytes / 2);
  }
}

// Runs whose steps are all alike.
class ReplayedTrainingTest : public DeviceTrainingTest {};

// All but the first of each section, so nothing goes through the host in the middle of one.
TEST_P(ReplayedTrainingTest, StepsAreRecordedAndReplayed) {
  const RunSetup& setup = GetParam();

  const std::vector<Outcome> outcomes =
      OnRanks(setup, [&](RankUnderTest* rank) { return rank->OnDevice(setup.bucket_bytes); });

  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.graphs, 2);                   // gradients, update
    EXPECT_EQ(outcome.launches, 2 * (kSteps - 1));  // the second run of each is a recording's first
  }
}

ModelSpec Cosmoflow() {
  return {
      .name = "cosmoflow",
      .cosmoflow =
          {.batch = 1, .cube_edge = 32, .kernel = 2, .base_filters = 1, .dropout = 0.5, .l2 = 0.01},
      .options = {.seed = 42}};
}

ModelSpec Accumulating() {
  ModelSpec spec = Cosmoflow();
  spec.options.accumulation = 2;
  return spec;
}

ModelSpec Deepcam() {
  return {.name = "deepcam",
          .deepcam = {.batch = 1, .height = 64, .width = 64, .base_filters = 2, .middle_blocks = 1},
          .options = {.seed = 42,
                      .optimizer = {.kind = OptimizerOptions::Kind::kLamb, .weight_decay = 0.01}}};
}

const RunSetup kCosmoflow = {.name = "Cosmoflow", .spec = Cosmoflow()};
const RunSetup kCosmoflowOnFour = {.name = "CosmoflowOnFourRanks", .spec = Cosmoflow(), .ranks = 4};
const RunSetup kDeepcam = {.name = "DeepcamInOneGroup", .spec = Deepcam(), .group = 2};
const RunSetup kDeepcamOnFour = {
    .name = "DeepcamInGroupsOfTwo", .spec = Deepcam(), .ranks = 4, .group = 2, .tolerance = 1e-4F};

std::string NameOf(const ::testing::TestParamInfo<RunSetup>& test) {
  return test.param.name;
}

INSTANTIATE_TEST_SUITE_P(
    Runs, DeviceTrainingTest,
    ::testing::Values(kCosmoflow, kCosmoflowOnFour,
                      RunSetup{.name = "CosmoflowFrozen", .spec = Cosmoflow(), .frozen = "conv3"},
                      RunSetup{.name = "CosmoflowAccumulating", .spec = Accumulating()}, kDeepcam,
                      kDeepcamOnFour),
    NameOf);
INSTANTIATE_TEST_SUITE_P(Runs, ReplayedTrainingTest,
                         ::testing::Values(kCosmoflow, kCosmoflowOnFour, kDeepcam, kDeepcamOnFour),
                         NameOf);

}  // namespace
}  // namespace assay
