// The collective operations, over every transport whose ranks can be threads.

#include "worker/comm/ring.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/random.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/comm/memory_world.h"
#include "tests/worker/comm/world.h"
#include "worker/comm/collective.h"
#include "worker/comm/rendezvous.h"
#include "worker/comm/rendezvous_server.h"
#include "worker/comm/single.h"
#include "worker/comm/tcp_rendezvous.h"
#include "worker/comm/ucx.h"

namespace assay::comm {
namespace {

using assay::testing::IsOk;
using assay::testing::IsOkAndHolds;
using assay::testing::StatusIs;
using ::testing::AnyOf;
using ::testing::Combine;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::OnEveryRank;
using testing::Soon;
using testing::Transport;
using ::testing::Values;
using ::testing::WithParamInterface;
using testing::World;

constexpr absl::Duration kShort = absl::Milliseconds(50);

class RingTest : public ::testing::Test, public WithParamInterface<std::tuple<Transport, int>> {
 protected:
  World Open() const { return std::get<0>(GetParam()).open(world_size(), &clock_); }
  int world_size() const { return std::get<1>(GetParam()); }

  RealClock clock_;
};

// Whole numbers below 1,000, whose float sums are exact in any order.
float WholeNumber(int rank, size_t i) {
  return static_cast<float>((i * 7919 + static_cast<size_t>(rank) * 331) % 1000);
}

std::vector<float> WholeNumbers(int rank, size_t size) {
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i)
    values[i] = WholeNumber(rank, i);
  return values;
}

// 3,000 and 100,003 do not divide by the ranks and take the ring; 1,000,000 takes several slices.
constexpr size_t kSizes[] = {0, 1, 2, 3, 7, 1000, 3001, 100'003, 1'000'000};

TEST_P(RingTest, SumsAreExactForWholeNumbers) {
  const World world = Open();
  for (const size_t size : kSizes) {
    std::vector<float> expected(size);
    for (int rank = 0; rank < world_size(); ++rank) {
      for (size_t i = 0; i < size; ++i)
        expected[i] += WholeNumber(rank, i);
    }
    OnEveryRank(world, [&](Collective* comm) {
      std::vector<float> values = WholeNumbers(comm->rank(), size);
      EXPECT_THAT(AllReduceSum(comm, std::span<float>(values), Soon()), IsOk());
      EXPECT_TRUE(values == expected) << "size " << size << " rank " << comm->rank();
    });
  }
}

// Short vectors and long ones in any order, and messages that are under way meanwhile: no rank is
// ever so far ahead that it overwrites what another still needs.
TEST_P(RingTest, OperationsFollowEachOtherInAnyOrder) {
  const World world = Open();
  constexpr int kOperations = 150;
  OnEveryRank(world, [&](Collective* comm) {
    const Stream sizes(11, Purpose::kTest);
    const Stream delays(12, Purpose::kTest, static_cast<uint32_t>(comm->rank()));
    for (uint64_t k = 0; k < kOperations; ++k) {
      const size_t size = 1 + (sizes.Bits(2 * k) % (sizes.Bits(2 * k + 1) % 4 == 0 ? 200'000 : 9));
      std::vector<float> values(size, static_cast<float>(k));
      for (uint32_t spin = delays.Bits(k) % 20'000; spin > 0; --spin)
        values[0] = static_cast<float>(k);
      float mine = static_cast<float>(comm->rank());
      float theirs = -1;
      const int next = (comm->rank() + 1) % comm->world_size();
      const int previous = (comm->rank() + comm->world_size() - 1) % comm->world_size();
      Request receive, send;
      if (comm->world_size() > 1) {
        receive = comm->StartReceive(Envelope{.peer = previous, .tag = 5},
                                     std::as_writable_bytes(std::span<float>(&theirs, 1)));
        send = comm->StartSend(Envelope{.peer = next, .tag = 5},
                               std::as_bytes(std::span<float>(&mine, 1)));
      }
      EXPECT_THAT(AllReduceSum(comm, std::span<float>(values), Soon()), IsOk());
      const float expected = static_cast<float>(k) * static_cast<float>(comm->world_size());
      EXPECT_THAT(values, Each(expected)) << "operation " << k << " rank " << comm->rank();
      if (comm->world_size() == 1) continue;
      EXPECT_THAT(comm->Wait(receive, Soon()), IsOk());
      EXPECT_THAT(comm->Wait(send, Soon()), IsOk());
      EXPECT_EQ(theirs, static_cast<float>(previous));
    }
  });
}

TEST_P(RingTest, TheMeanIsTheExactSumDividedByTheRankCount) {
  const World world = Open();
  for (const size_t size : {size_t{5}, size_t{3001}}) {
    std::vector<float> expected(size);
    for (size_t i = 0; i < size; ++i) {
      float sum = 0;
      for (int rank = 0; rank < world_size(); ++rank)
        sum += WholeNumber(rank, i);
      expected[i] = sum / static_cast<float>(world_size());
    }
    OnEveryRank(world, [&](Collective* comm) {
      std::vector<float> values = WholeNumbers(comm->rank(), size);
      EXPECT_THAT(AllReduceMean(comm, std::span<float>(values), Soon()), IsOk());
      EXPECT_TRUE(values == expected) << "size " << size << " rank " << comm->rank();
    });
  }
}

TEST_P(RingTest, EveryRankEndsWithTheSameBitsAndARepeatGivesThemAgain) {
  const World world = Open();
  for (const size_t size : {size_t{77}, size_t{70'001}}) {
    std::vector<std::vector<float>> first(world.size(), std::vector<float>(size));
    std::vector<std::vector<float>> second = first;
    OnEveryRank(world, [&](Collective* comm) {
      const Stream stream(7, Purpose::kTest, static_cast<uint32_t>(comm->rank()));
      for (auto* results : {&first, &second}) {
        std::vector<float>& values = (*results)[static_cast<size_t>(comm->rank())];
        for (size_t i = 0; i < size; ++i)
          values[i] = stream.Normal(i);
        EXPECT_THAT(AllReduceMean(comm, std::span<float>(values), Soon()), IsOk());
      }
    });
    for (const std::vector<float>& other : first) {
      EXPECT_EQ(std::memcmp(other.data(), first[0].data(), size * sizeof(float)), 0);
    }
    EXPECT_TRUE(first == second);
  }
}

TEST_P(RingTest, BroadcastCopiesRankZerosBytes) {
  const World world = Open();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4097}, size_t{200'003}}) {
    OnEveryRank(world, [&](Collective* comm) {
      std::vector<float> values = WholeNumbers(comm->rank(), size);
      EXPECT_THAT(BroadcastFromZero(comm, std::as_writable_bytes(std::span<float>(values)), Soon()),
                  IsOk());
      EXPECT_TRUE(values == WholeNumbers(0, size)) << "size " << size;
    });
  }
}

TEST_P(RingTest, AllGatherKeepsTheOrderOfTheRanks) {
  const World world = Open();
  OnEveryRank(world, [&](Collective* comm) {
    const std::vector<int64_t> mine = {comm->rank(), -comm->rank()};
    std::vector<int64_t> all(2 * world.size());
    EXPECT_THAT(AllGather(comm, std::as_bytes(std::span<const int64_t>(mine)),
                          std::as_writable_bytes(std::span<int64_t>(all)), Soon()),
                IsOk());
    for (int rank = 0; rank < world_size(); ++rank) {
      EXPECT_EQ(all[static_cast<size_t>(2 * rank)], rank);
      EXPECT_EQ(all[static_cast<size_t>(2 * rank + 1)], -rank);
    }
  });
}

TEST_P(RingTest, NobodyLeavesABarrierBeforeAllHaveEntered) {
  const World world = Open();
  std::atomic<int> entered = 0;
  OnEveryRank(world, [&](Collective* comm) {
    for (int round = 1; round <= 30; ++round) {
      ++entered;
      EXPECT_THAT(Barrier(comm, Soon()), IsOk());
      EXPECT_GE(entered.load(), round * world_size());
      EXPECT_THAT(Barrier(comm, Soon()), IsOk());
    }
  });
}

TEST_P(RingTest, AgreementOnBytesNamesTheRankThatHasAnotherBit) {
  const World world = Open();
  OnEveryRank(world, [&](Collective* comm) {
    std::vector<float> values = WholeNumbers(0, 100'003);
    const auto bytes = std::as_writable_bytes(std::span<float>(values));
    EXPECT_THAT(AgreeSameBytes(comm, "the weights", bytes, Soon()), IsOk());
    if (world_size() == 1) return;
    const int last = world_size() - 1;
    if (comm->rank() == last) bytes[300'000] ^= std::byte{1};
    EXPECT_THAT(AgreeSameBytes(comm, "the weights", bytes, Soon()),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(absl::StrFormat("the weights: rank %d", last))));
    EXPECT_THAT(Barrier(comm, Soon()), IsOk());
  });
}

TEST_P(RingTest, CloseEndsInOrderOnEveryRank) {
  const World world = Open();
  OnEveryRank(world, [&](Collective* comm) {
    std::vector<double> values(5000, 1.0);
    EXPECT_THAT(AllReduceSum(comm, std::span<double>(values), Soon()), IsOk());
    EXPECT_THAT(comm->Close(Soon()), IsOk());
    EXPECT_THAT(comm->Close(Soon()), IsOk());
  });
}

TEST_P(RingTest, APeerThatNeverCallsIsADeadlineExceededThatNamesIt) {
  if (world_size() == 1) GTEST_SKIP() << "no peer";
  const World world = Open();
  std::vector<float> values(50'000, 1.0F);

  const absl::Status status =
      AllReduceSum(world[0].get(), std::span<float>(values), clock_.Mono() + kShort);

  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank ")));
  EXPECT_EQ(world[0]->failure(), status);
  EXPECT_EQ(Barrier(world[0].get(), Soon()), status) << "the failure must be final";
}

TEST_P(RingTest, APeerThatIsDestroyedFailsTheOthersLongBeforeTheDeadline) {
  if (world_size() == 1) GTEST_SKIP() << "no peer";
  World world = Open();
  OnEveryRank(world, [&](Collective* comm) { EXPECT_THAT(Barrier(comm, Soon()), IsOk()); });

  world.pop_back();

  OnEveryRank(world, [&](Collective* comm) {
    EXPECT_THAT(Barrier(comm, clock_.Mono() + absl::Hours(1)),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank ")));
  });
}

TEST_P(RingTest, RanksInDifferentOperationsFailInsteadOfMixingData) {
  if (world_size() == 1) GTEST_SKIP() << "no peer";
  const World world = Open();
  OnEveryRank(world, [&](Collective* comm) {
    std::vector<float> values(comm->rank() == 0 ? 10 : 11, 1.0F);
    EXPECT_THAT(
        AllReduceSum(comm, std::span<float>(values), clock_.Mono() + kShort),
        AnyOf(StatusIs(absl::StatusCode::kDataLoss), StatusIs(absl::StatusCode::kUnavailable),
              StatusIs(absl::StatusCode::kUnauthenticated),
              StatusIs(absl::StatusCode::kDeadlineExceeded), IsOk()));
  });
  EXPECT_FALSE(world[0]->failure().ok());
}

World OpenOneRank(int world_size, const Clock* /*clock*/) {
  World world;
  EXPECT_EQ(world_size, 1);
  world.push_back(OpenSingle());
  return world;
}

// Ranks are threads here, each with a UCX context of its own, as processes have.
World OpenUcxWorld(int world_size, const Clock* clock, const std::string& transports,
                   Sealing sealing) {
  absl::StatusOr<std::unique_ptr<RendezvousServer>> server = RendezvousServer::Start(
      RendezvousServerOptions{.world_size = world_size, .token = "test"}, clock);
  CHECK_OK(server.status());
  const std::string address = (*server)->address();
  World world(static_cast<size_t>(world_size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      const JoinOptions options{
          .address = address, .rank = rank, .world_size = world_size, .token = "test"};
      absl::StatusOr<std::unique_ptr<Rendezvous>> rendezvous =
          JoinRendezvous(options, rank == 0 ? *std::move(server) : nullptr, clock, Soon());
      CHECK_OK(rendezvous.status());
      absl::StatusOr<std::unique_ptr<Collective>> comm =
          OpenUcx(*std::move(rendezvous),
                  UcxOptions{.transports = transports, .sealing = sealing, .secret = "test"}, clock,
                  Soon());
      CHECK_OK(comm.status());
      world[static_cast<size_t>(rank)] = *std::move(comm);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return world;
}

World OpenUcxSharedMemory(int world_size, const Clock* clock) {
  return OpenUcxWorld(world_size, clock, "posix,self", Sealing::kOverNetworks);
}

World OpenSealedSharedMemory(int world_size, const Clock* clock) {
  return OpenUcxWorld(world_size, clock, "posix,self", Sealing::kAlways);
}

World OpenUcxTcp(int world_size, const Clock* clock) {
  return OpenUcxWorld(world_size, clock, "tcp,self", Sealing::kOverNetworks);
}

World OpenTrustedTcp(int world_size, const Clock* clock) {
  return OpenUcxWorld(world_size, clock, "tcp,self", Sealing::kNetworkTrusted);
}

TEST(ProtectionTest, MessagesAreSealedWhereTheyCrossANetworkUnlessItIsTrusted) {
  const RealClock clock;
  const std::pair<World (*)(int, const Clock*), Protection> cases[] = {
      {OpenUcxSharedMemory, Protection::kOneHost},
      {OpenSealedSharedMemory, Protection::kSealed},
      {OpenUcxTcp, Protection::kSealed},
      {OpenTrustedTcp, Protection::kTrustedNetwork}};
  for (const auto& [open, expected] : cases) {
    const World world = open(2, &clock);
    for (const std::unique_ptr<Collective>& comm : world)
      EXPECT_EQ(comm->protection(), expected);
  }
}

// Sums of random numbers of each size, by one rank.
std::vector<std::vector<float>> RandomSums(const World& world) {
  std::vector<std::vector<float>> sums;
  OnEveryRank(world, [&](Collective* comm) {
    const Stream stream(7, Purpose::kTest, static_cast<uint32_t>(comm->rank()));
    for (const size_t size : kSizes) {
      std::vector<float> values(size);
      for (size_t i = 0; i < size; ++i)
        values[i] = stream.Normal(i);
      EXPECT_THAT(AllReduceMean(comm, std::span<float>(values), Soon()), IsOk());
      if (comm->rank() == 0) sums.push_back(std::move(values));
    }
  });
  return sums;
}

TEST(SharedMemoryTest, SumsHaveTheBitsThatMessagesGive) {
  const RealClock clock;
  for (const int world_size : {2, 3, 5}) {
    const std::vector<std::vector<float>> expected =
        RandomSums(OpenMemoryWorld(world_size, &clock));
    const World world = OpenUcxSharedMemory(world_size, &clock);
    for (const bool is_past_caches : {false, true}) {
      for (const std::unique_ptr<Collective>& comm : world) {
        ASSERT_NE(comm->shared_area(), nullptr);
        comm->shared_area()->is_past_caches = is_past_caches;
      }
      EXPECT_TRUE(RandomSums(world) == expected) << world_size << " ranks, " << is_past_caches;
    }
  }
}

TEST(SharedMemoryTest, RanksThatSealOrUseANetworkShareNone) {
  const RealClock clock;
  for (const auto& open : {OpenSealedSharedMemory, OpenTrustedTcp}) {
    const World world = open(2, &clock);
    for (const std::unique_ptr<Collective>& comm : world)
      EXPECT_EQ(comm->shared_area(), nullptr);
  }
}

TEST(SharedMemoryTest, VectorsOfDifferentSizesAreNotAdded) {
  const RealClock clock;
  const World world = OpenUcxSharedMemory(2, &clock);
  OnEveryRank(world, [&](Collective* comm) {
    std::vector<float> values(comm->rank() == 0 ? 50'000 : 60'000, 1.0F);
    EXPECT_THAT(AllReduceSum(comm, std::span<float>(values), Soon()),
                AnyOf(StatusIs(absl::StatusCode::kDataLoss, HasSubstr("rank ")),
                      StatusIs(absl::StatusCode::kUnavailable)));
    EXPECT_THAT(values, Each(1.0F));
  });
}

std::string NameOf(const ::testing::TestParamInfo<std::tuple<Transport, int>>& test) {
  return std::get<0>(test.param).name + std::to_string(std::get<1>(test.param));
}

INSTANTIATE_TEST_SUITE_P(Single, RingTest,
                         Combine(Values(Transport{"Single", OpenOneRank}), Values(1)), NameOf);
INSTANTIATE_TEST_SUITE_P(Memory, RingTest,
                         Combine(Values(Transport{"Memory", OpenMemoryWorld}),
                                 Values(1, 2, 3, 4, 8)),
                         NameOf);

INSTANTIATE_TEST_SUITE_P(UcxSharedMemory, RingTest,
                         Combine(Values(Transport{"UcxSharedMemory", OpenUcxSharedMemory}),
                                 Values(1, 2, 3, 4)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(SealedSharedMemory, RingTest,
                         Combine(Values(Transport{"SealedSharedMemory", OpenSealedSharedMemory}),
                                 Values(2, 3)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(TrustedTcp, RingTest,
                         Combine(Values(Transport{"TrustedTcp", OpenTrustedTcp}), Values(2)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(UcxTcp, RingTest,
                         Combine(Values(Transport{"UcxTcp", OpenUcxTcp}), Values(2, 3)), NameOf);

}  // namespace
}  // namespace assay::comm
