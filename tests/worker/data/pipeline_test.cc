// From a dataset on disk to batches: generator, layout, sampler, staging and prefetcher together.

#include <array>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/dataset/cosmo_dataset.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "worker/data/prefetcher.h"
#include "worker/data/sampler.h"
#include "worker/data/staging.h"

namespace assay::data {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::TempDir;

using Targets = std::array<float, dataset::kCosmoTargets>;

constexpr int kSamples = 16;
constexpr int kRanks = 4;
constexpr int kRanksPerNode = 2;
constexpr int kEpochs = 2;

dataset::CosmoDatasetSpec Spec() {
  return {.parameters = {.mode = dataset::CosmoMode::kBeacon, .seed = 8},
          .compression = dataset::Compression::kGzip,
          .train_samples = kSamples,
          .validation_samples = 1};
}

// Goal: over all ranks, every epoch delivers every sample of the dataset once. Method: targets tell
// samples apart.
void ExpectEveryEpochIsWhole(bool staged) {
  const TempDir source;
  ASSERT_THAT(dataset::GenerateCosmoDataset(source.path(), Spec(), 2), IsOk());
  const std::vector<std::string> names =
      dataset::ListSamples(source.path(), dataset::Split::kTrain, kSamples).value();
  const TempDir nodes[kRanks / kRanksPerNode];
  std::vector<Sampler> samplers;
  for (int rank = 0; rank < kRanks; ++rank) {
    samplers.push_back(Sampler::Create({.samples = kSamples,
                                        .world_size = kRanks,
                                        .rank = rank,
                                        .ranks_per_node = kRanksPerNode,
                                        .local_batch = 2,
                                        .staged = staged,
                                        .seed = 3})
                           .value());
    if (!staged) continue;
    StagingJob job = {.source_dir = source.path(),
                      .target_dir = nodes[rank / kRanksPerNode].path()};
    for (const uint32_t sample : samplers.back().SamplesToStage())
      job.files.push_back({.name = names[sample]});
    const RealClock clock;
    ASSERT_THAT(StageFiles(job, &clock), IsOk());
  }

  std::multiset<Targets> seen[kEpochs];
  for (int rank = 0; rank < kRanks; ++rank) {
    const Sampler& sampler = samplers[static_cast<size_t>(rank)];
    const std::string dir = staged ? nodes[rank / kRanksPerNode].path() : source.path();
    const std::unique_ptr<Prefetcher> prefetcher =
        Prefetcher::Create({.batch_size = 2, .epochs = kEpochs},
                           CosmoflowFormat(32, dataset::Compression::kGzip),
                           OrderOf(sampler, dir, names))
            .value();
    prefetcher->Start();
    for (int64_t step = 0; step < kEpochs * sampler.StepsPerEpoch(2); ++step) {
      const absl::StatusOr<const Batch*> batch = prefetcher->Next();
      ASSERT_THAT(batch, IsOk());
      for (size_t i = 0; i < 8; i += 4) {
        const std::span<const float> y = (*batch)->Targets<float>();
        seen[step / sampler.StepsPerEpoch(2)].insert({y[i], y[i + 1], y[i + 2], y[i + 3]});
      }
    }
  }

  std::multiset<Targets> want;
  for (uint32_t i = 0; i < kSamples; ++i)
    want.insert(dataset::CosmoTargets(Spec().parameters, dataset::Split::kTrain, i));
  for (const std::multiset<Targets>& epoch : seen)
    EXPECT_EQ(epoch, want);
}

TEST(PipelineTest, UnstagedEpochsDeliverTheWholeDataset) {
  ExpectEveryEpochIsWhole(false);
}

TEST(PipelineTest, StagedEpochsDeliverTheWholeDataset) {
  ExpectEveryEpochIsWhole(true);
}

}  // namespace
}  // namespace assay::data
