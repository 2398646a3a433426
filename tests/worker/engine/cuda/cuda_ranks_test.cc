// What ranks' devices say to each other, on devices faked on the CPU: each rank is a thread.

#include "worker/engine/backends/cuda/cuda_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/worker/engine/cuda/device_ranks_conformance.h"
#include "tests/worker/engine/cuda/host_device.h"
#include "tests/worker/engine/host_tensor.h"
#include "worker/engine/backends/cuda/cuda_backend.h"

namespace assay::cuda {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);

// One rank with its device, on its own thread.
struct Rank {
  int rank = 0;
  HostDevice* device = nullptr;
  CudaBackend* backend = nullptr;

  RankAverage* ranks() const { return backend->rank_average(); }

  // A vector in the backend's memory; it is never freed, as a model's is not in a test.
  Tensor Vector(const std::vector<float>& values) const {
    const Shape shape = {static_cast<int64_t>(values.size())};
    const Tensor tensor = {*backend->Allocate(values.size() * sizeof(float)), shape,
                           DType::kFloat32};
    backend->CopyIn(values.data(), tensor);
    return tensor;
  }
  std::vector<float> Read(const Tensor& tensor) const {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    backend->CopyOut(tensor, values.data());
    backend->Free(tensor.data);
    return values;
  }
};

// Runs `body` on `size` ranks that have joined, in groups of `group_size`; the results by rank.
template <typename Result>
std::vector<Result> OnRanks(int size, int group_size,
                            const std::function<Result(const Rank&)>& body) {
  HostDevice maker;
  std::string id;
  EXPECT_TRUE(maker.MakeRanksId(&id).ok());
  std::vector<Result> results(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      auto device = std::make_unique<HostDevice>();
      HostDevice* const watched = device.get();
      auto backend = CudaBackend::Make(std::move(device), {});
      ASSERT_THAT(backend, IsOk());
      ASSERT_THAT((*backend)->rank_average()->Join({.id = id,
                                                    .rank = rank,
                                                    .size = size,
                                                    .group_size = group_size,
                                                    .timeout = kPatience}),
                  IsOk());
      results[static_cast<size_t>(rank)] = body({rank, watched, backend->get()});
    });
  for (std::thread& thread : threads)
    thread.join();
  return results;
}

using Numbers = std::vector<float>;

TEST(CudaRanksTest, AllRanksEndWithTheMean) {
  const auto means = OnRanks<Numbers>(4, 1, [](const Rank& rank) {
    const Tensor values = rank.Vector({static_cast<float>(rank.rank), 8});
    rank.ranks()->Average(values, RankScope::kAll);
    return rank.Read(values);
  });

  EXPECT_THAT(means, Each(ElementsAre(1.5F, 8.0F)));
}

TEST(CudaRanksTest, AGroupIsConsecutiveRanks) {
  const auto means = OnRanks<Numbers>(4, 2, [](const Rank& rank) {
    const Tensor values = rank.Vector({static_cast<float>(rank.rank)});
    rank.ranks()->Average(values, RankScope::kGroup);
    return rank.Read(values);
  });

  EXPECT_THAT(means, ElementsAre(ElementsAre(0.5F), ElementsAre(0.5F), ElementsAre(2.5F),
                                 ElementsAre(2.5F)));
}

// The fake runs what is aside when it is joined: that it is joined is what this shows.
TEST(CudaRanksTest, WhatWasStartedIsThereAfterFinish) {
  const auto means = OnRanks<Numbers>(2, 1, [](const Rank& rank) {
    const Tensor first = rank.Vector({static_cast<float>(rank.rank)});
    const Tensor other = rank.Vector({1});
    rank.ranks()->Start(first);
    rank.backend->Copy(first, other);  // not yet averaged here
    rank.ranks()->Finish();
    return Numbers{rank.Read(other)[0], rank.Read(first)[0]};
  });

  EXPECT_THAT(means, ElementsAre(ElementsAre(0, 0.5F), ElementsAre(1, 0.5F)));
}

TEST(CudaRanksTest, WhatWaitsForOtherRanksWaitsForWhatRunsAsideFirst) {
  const auto means = OnRanks<Numbers>(2, 2, [](const Rank& rank) {
    const Tensor aside = rank.Vector({static_cast<float>(rank.rank)});
    const Tensor group = rank.Vector({static_cast<float>(2 * rank.rank)});
    rank.ranks()->Start(aside);
    rank.ranks()->Average(group, RankScope::kGroup);  // the fake refuses two at once
    return Numbers{rank.Read(aside)[0], rank.Read(group)[0]};
  });

  EXPECT_THAT(means, Each(ElementsAre(0.5F, 1.0F)));
}

TEST(CudaRanksTest, NeighboursExchangeMessagesOfAnyLength) {
  const auto received = OnRanks<Numbers>(3, 1, [](const Rank& rank) {
    const auto own = static_cast<float>(rank.rank);
    const Tensor up = rank.Vector({own, own}), down = rank.Vector({-own});
    const Tensor from_below = rank.Vector({9, 9}), from_above = rank.Vector({9});
    std::vector<RankTransfer> transfers;
    if (rank.rank > 0)
      transfers.push_back({.rank = rank.rank - 1, .sent = down, .received = from_below});
    if (rank.rank < 2)
      transfers.push_back({.rank = rank.rank + 1, .sent = up, .received = from_above});
    rank.ranks()->Exchange(transfers);
    Numbers all = rank.Read(from_below);
    all.push_back(rank.Read(from_above)[0]);
    rank.Read(up), rank.Read(down);
    return all;
  });

  EXPECT_THAT(received,
              ElementsAre(ElementsAre(9, 9, -1), ElementsAre(0, 0, -2), ElementsAre(1, 1, 9)));
}

TEST(CudaRanksTest, ATransferWithNothingToSendOnlyReceives) {
  const auto received = OnRanks<Numbers>(2, 1, [](const Rank& rank) {
    const Tensor values = rank.Vector({static_cast<float>(rank.rank + 1)});
    std::vector<RankTransfer> transfers = {{.rank = 1 - rank.rank}};
    (rank.rank == 0 ? transfers[0].sent : transfers[0].received) = values;
    rank.ranks()->Exchange(transfers);
    return rank.Read(values);
  });

  EXPECT_THAT(received, Each(ElementsAre(1)));
}

// Sections with work of other ranks are recorded and replayed as others are.
TEST(CudaRanksTest, SectionsWithOtherRanksAreReplayed) {
  constexpr int kRuns = 5;
  const auto counts = OnRanks<Numbers>(2, 2, [](const Rank& rank) {
    const Tensor values = rank.Vector({static_cast<float>(rank.rank), 4});
    const Tensor moments = rank.Vector({static_cast<float>(rank.rank)});
    const Tensor halo = rank.Vector({7});
    for (int run = 0; run < kRuns; ++run) {
      rank.backend->BeginSection(0);
      rank.ranks()->Average(moments, RankScope::kGroup);
      const RankTransfer transfer = {.rank = 1 - rank.rank, .sent = moments, .received = halo};
      rank.ranks()->Exchange(std::span(&transfer, 1));
      rank.ranks()->Start(values.Part(1, {1}));
      rank.backend->Copy(moments, halo);
      rank.ranks()->Start(values.Part(0, {1}));
      rank.ranks()->Finish();
      rank.backend->EndSection();
    }
    EXPECT_EQ(rank.ranks()->traffic().exchanges, 2 * kRuns);
    EXPECT_EQ(rank.ranks()->traffic().bytes, 2 * kRuns * 4);
    const Numbers found = {rank.Read(values)[0],
                           rank.Read(halo)[0],
                           rank.Read(moments)[0],
                           static_cast<float>(rank.device->launches()),
                           static_cast<float>(rank.device->averages()),
                           static_cast<float>(rank.device->exchanges())};
    return found;
  });

  EXPECT_THAT(counts, Each(ElementsAre(0.5F, 0.5F, 0.5F, kRuns - 1, 3 * kRuns, kRuns)));
}

// As when a copy to the host comes in the middle of a section.
TEST(CudaRanksTest, AnInterruptedRecordingLeavesNothingAside) {
  const auto means = OnRanks<Numbers>(2, 1, [](const Rank& rank) {
    const Tensor values = rank.Vector({0});
    const Tensor other = rank.Vector({0});
    Numbers found;
    for (int run = 0; run < 3; ++run) {
      const auto number = static_cast<float>(rank.rank + 2 * run);
      rank.backend->CopyIn(&number, values);
      rank.backend->BeginSection(0);
      rank.ranks()->Start(values);
      if (run > 0) rank.backend->CopyIn(&number, other);
      rank.ranks()->Finish();
      rank.backend->EndSection();
      float mean = 0;
      rank.backend->CopyOut(values, &mean);
      found.push_back(mean);
    }
    rank.Read(values), rank.Read(other);
    return found;
  });

  EXPECT_THAT(means, Each(ElementsAre(0.5F, 2.5F, 4.5F)));
}

// The fake does what is demanded of GPUs.
TEST(HostDeviceTest, RanksConform) {
  for (const int size : {1, 2, 4}) {
    SCOPED_TRACE(size);
    CheckRanksOnDevices(size, [](int) { return std::make_unique<HostDevice>(); });
  }
}

TEST(HostDeviceTest, ARankThatWaitsInVainSaysSoInTime) {
  HostDevice device;
  CheckRankWaitsInVain(&device);
}

TEST(CudaRanksTest, ARankThatWaitsInVainSaysWhichItIsAndHowLong) {
  auto backend = CudaBackend::Make(std::make_unique<HostDevice>(), {});
  ASSERT_THAT(backend, IsOk());
  RankAverage* const ranks = (*backend)->rank_average();
  const absl::StatusOr<std::string> id = ranks->MakeId();
  ASSERT_THAT(id, IsOk());

  const absl::Status status =
      ranks->Join({.id = *id, .rank = 0, .size = 2, .timeout = absl::Milliseconds(20)});

  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               AllOf(HasSubstr("rank 0 of 2"), HasSubstr("20 ms"))));
  EXPECT_FALSE(ranks->has_joined());
}

}  // namespace
}  // namespace assay::cuda
