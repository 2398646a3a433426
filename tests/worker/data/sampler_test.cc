#include "worker/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/status_matchers.h"

namespace assay::data {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sampler MakeSampler(const SamplerOptions& options) {
  absl::StatusOr<Sampler> sampler = Sampler::Create(options);
  EXPECT_THAT(sampler, IsOk());
  return *std::move(sampler);
}

std::vector<uint32_t> Sorted(std::vector<uint32_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<uint32_t> AllSamples(int64_t count) {
  std::vector<uint32_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

struct Layout {
  int64_t samples;
  int world_size;
  int ranks_per_node;
  int local_batch;
};
constexpr Layout kLayouts[] = {{16, 1, 1, 4}, {24, 4, 2, 3}, {96, 8, 4, 2},
                               {96, 8, 8, 1}, {30, 5, 1, 2}, {512, 16, 4, 8}};

// Goal: an epoch is the whole dataset, once, however it is dealt out. Method: all ranks of several
// layouts, staged and not, in several epochs.
TEST(SamplerTest, EveryEpochDealsEverySampleExactlyOnce) {
  for (const Layout& layout : kLayouts) {
    for (const bool staged : {false, true}) {
      for (const int epoch : {0, 1, 17}) {
        std::vector<uint32_t> seen;
        for (int rank = 0; rank < layout.world_size; ++rank) {
          const Sampler sampler = MakeSampler({.samples = layout.samples,
                                               .world_size = layout.world_size,
                                               .rank = rank,
                                               .ranks_per_node = layout.ranks_per_node,
                                               .local_batch = layout.local_batch,
                                               .staged = staged,
                                               .seed = 7});
          const std::vector<uint32_t> order = sampler.Order(epoch);
          EXPECT_EQ(static_cast<int64_t>(order.size()), sampler.samples_per_rank());
          EXPECT_EQ(sampler.StepsPerEpoch(layout.local_batch) * layout.local_batch,
                    sampler.samples_per_rank());
          seen.insert(seen.end(), order.begin(), order.end());
        }
        EXPECT_EQ(Sorted(seen), AllSamples(layout.samples));
      }
    }
  }
}

TEST(SamplerTest, AllRanksDealFromOnePermutation) {
  const auto order = [](int world_size, int rank) {
    return MakeSampler({.samples = 24, .world_size = world_size, .rank = rank, .seed = 3}).Order(5);
  };
  const std::vector<uint32_t> whole = order(1, 0);

  std::vector<uint32_t> interleaved;
  for (size_t i = 0; i < 6; ++i)
    for (int rank = 0; rank < 4; ++rank)
      interleaved.push_back(order(4, rank)[i]);

  EXPECT_EQ(interleaved, whole);
}

TEST(SamplerTest, WithoutStagingARankSeesOtherSamplesInTheNextEpoch) {
  const Sampler sampler = MakeSampler({.samples = 4096, .world_size = 4, .rank = 1, .seed = 1});

  EXPECT_NE(sampler.Order(0), sampler.Order(1));
  EXPECT_NE(Sorted(sampler.Order(0)), Sorted(sampler.Order(1)));
  EXPECT_EQ(sampler.Order(1), sampler.Order(1));
}

TEST(SamplerTest, StagedNodesKeepTheirSamplesAndReshuffleThem) {
  const SamplerOptions options = {
      .samples = 4096, .world_size = 8, .rank = 5, .ranks_per_node = 4, .staged = true, .seed = 1};
  const Sampler sampler = MakeSampler(options);
  std::vector<uint32_t> node;
  for (int rank = 4; rank < 8; ++rank) {
    SamplerOptions of_rank = options;
    of_rank.rank = rank;
    const std::vector<uint32_t> order = MakeSampler(of_rank).Order(3);
    node.insert(node.end(), order.begin(), order.end());
  }

  EXPECT_EQ(Sorted(node), sampler.NodeSamples());
  EXPECT_NE(Sorted(sampler.Order(0)), Sorted(sampler.Order(1)));  // exchanged within the node
}

// The mapping of the reference's stage_files: files[rank::world_size], and node k reads what its
// ranks copied.
TEST(SamplerTest, StagesEveryWorldSizethFile) {
  const Sampler sampler =
      MakeSampler({.samples = 12, .world_size = 4, .rank = 3, .ranks_per_node = 2, .staged = true});

  EXPECT_THAT(sampler.SamplesToStage(), ElementsAre(3, 7, 11));
  EXPECT_THAT(sampler.NodeSamples(), ElementsAre(2, 3, 6, 7, 10, 11));
}

TEST(SamplerTest, ValidationIsDealtInFileOrder) {
  const Sampler sampler =
      MakeSampler({.samples = 8, .world_size = 2, .rank = 1, .local_batch = 2, .shuffle = false});

  EXPECT_THAT(sampler.Order(0), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(sampler.Order(4), ElementsAre(1, 3, 5, 7));
}

TEST(SamplerTest, SeedsGiveDifferentOrders) {
  EXPECT_NE(MakeSampler({.samples = 64, .seed = 1}).Order(0),
            MakeSampler({.samples = 64, .seed = 2}).Order(0));
}

TEST(SamplerTest, RefusesARemainderAndNamesWhatWouldFit) {
  EXPECT_THAT(
      Sampler::Create({.samples = 100, .world_size = 8, .ranks_per_node = 4, .local_batch = 4}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("100 samples"), HasSubstr("global batch 32"),
                     HasSubstr("use 96 or 128"))));
}

TEST(SamplerTest, RefusesImpossibleRanks) {
  EXPECT_THAT(Sampler::Create({.samples = 8, .world_size = 4, .rank = 4}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0..3")));
  EXPECT_THAT(Sampler::Create({.samples = 8, .world_size = 4, .ranks_per_node = 3}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("divide")));
  EXPECT_THAT(Sampler::Create({.samples = 8, .local_batch = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Sampler::Create({.samples = 0}), StatusIs(absl::StatusCode::kInvalidArgument));
}

// PyTorch's DistributedSampler and DataLoader, both with drop_last: 23 samples on 4 ranks leave 5
// each, and batches of 2 leave 4.
TEST(SamplerTest, DroppingLeavesOtherSamplesOutInEachEpoch) {
  std::set<uint32_t> first, both;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int rank = 0; rank < 4; ++rank) {
      const Sampler sampler = Sampler::Create({.samples = 23,
                                               .world_size = 4,
                                               .rank = rank,
                                               .local_batch = 2,
                                               .seed = 3,
                                               .remainder = Remainder::kDrop})
                                  .value();
      const std::vector<uint32_t> order = sampler.Order(epoch);
      EXPECT_EQ(order.size(), 4U);
      EXPECT_EQ(sampler.StepsPerEpoch(2), 2);
      if (epoch == 0) first.insert(order.begin(), order.end());
      both.insert(order.begin(), order.end());
    }
  }

  EXPECT_EQ(first.size(), 16U);
  EXPECT_GT(both.size(), 16U);
  EXPECT_THAT(Sampler::Create(
                  {.samples = 7, .world_size = 4, .local_batch = 2, .remainder = Remainder::kDrop}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("smaller")));
}

// DeepCAM's validation: contiguous parts, then sample i of the rest to rank i mod ranks.
TEST(SamplerTest, UnevenPartsLeaveNothingOut) {
  const std::vector<std::vector<uint32_t>> expected = {{0, 1, 6}, {2, 3, 7}, {4, 5}};
  for (int rank = 0; rank < 3; ++rank) {
    const Sampler sampler = Sampler::Create({.samples = 8,
                                             .world_size = 3,
                                             .rank = rank,
                                             .local_batch = 2,
                                             .remainder = Remainder::kUneven})
                                .value();

    EXPECT_EQ(sampler.Order(5), expected[static_cast<size_t>(rank)]);
    EXPECT_EQ(sampler.samples_per_rank(), std::ssize(expected[static_cast<size_t>(rank)]));
    EXPECT_EQ(sampler.StepsPerEpoch(2), rank == 2 ? 1 : 2);
  }
}

// Staged: a node keeps what its ranks copied, and its ranks exchange only that.
TEST(SamplerTest, StagedRemaindersStayOnTheNode) {
  std::set<uint32_t> evaluated;
  for (int rank = 0; rank < 4; ++rank) {
    SamplerOptions options = {.samples = 23,
                              .world_size = 4,
                              .rank = rank,
                              .ranks_per_node = 2,
                              .local_batch = 2,
                              .staged = true,
                              .remainder = Remainder::kDrop};
    const Sampler train = MakeSampler(options);
    const std::vector<uint32_t> node = train.NodeSamples(), order = train.Order(1);
    EXPECT_EQ(order.size(), 4U);
    for (const uint32_t sample : order)
      EXPECT_TRUE(std::binary_search(node.begin(), node.end(), sample)) << sample;
    options.remainder = Remainder::kUneven;
    const std::vector<uint32_t> mine = MakeSampler(options).Order(1);
    EXPECT_EQ(mine, MakeSampler(options).SamplesToStage());
    EXPECT_EQ(std::ssize(mine), MakeSampler(options).samples_per_rank());
    evaluated.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(evaluated.size(), 23U);
}

}  // namespace
}  // namespace assay::data
