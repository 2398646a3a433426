// What the counting Collective says of operations whose traffic can be worked out by hand.

#include "worker/comm/counting.h"

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/comm/memory_world.h"
#include "tests/worker/comm/world.h"
#include "worker/comm/ring.h"
#include "worker/comm/single.h"

namespace assay::comm {
namespace {

using assay::testing::FakeClock;
using assay::testing::IsOk;
using assay::testing::StatusIs;
using testing::OnEveryRank;
using testing::Soon;
using testing::World;

// A world whose ranks count, with a clock that stands still.
class CountingTest : public ::testing::Test {
 protected:
  void Open(int world_size) {
    for (std::unique_ptr<Collective>& rank : OpenMemoryWorld(world_size, &real_clock_))
      world_.push_back(std::make_unique<CountingCollective>(std::move(rank), &clock_));
  }
  const Traffic& TrafficOf(size_t rank) const {
    return static_cast<const CountingCollective&>(*world_[rank]).traffic();
  }

  RealClock real_clock_;
  FakeClock clock_;
  World world_;
};

TEST_F(CountingTest, SizesFallIntoTheirClasses) {
  EXPECT_EQ(SizeClassOf(0), 0U);
  EXPECT_EQ(SizeClassOf(8 << 10), 0U);
  EXPECT_EQ(SizeClassOf((8 << 10) + 1), 1U);
  EXPECT_EQ(SizeClassOf(1 << 20), 2U);
  EXPECT_EQ(SizeClassOf(16 << 20), 3U);
  EXPECT_EQ(SizeClassOf((16 << 20) + 1), kSizeClassCount - 1);
  EXPECT_EQ(SizeClassName(kSizeClassCount - 1), "above 16 MiB");
}

// CosmoFlow at 32 has 4,778,788 parameters, 19,115,152 bytes of gradients. In a ring of n ranks
// each sends every part but one twice: 2 (n - 1) / n of the vector; here the parts are equal.
TEST_F(CountingTest, AGradientsRingSendsWhatTheRingMustSend) {
  constexpr int kRanks = 4;
  constexpr int64_t kParameters = 4'778'788;
  Open(kRanks);
  OnEveryRank(world_, [](Collective* comm) {
    std::vector<float> gradients(kParameters, 1);
    EXPECT_THAT(AllReduceMean(comm, std::span<float>(gradients), Soon()), IsOk());
  });

  for (size_t rank = 0; rank < kRanks; ++rank) {
    const OperationCounts& counts = TrafficOf(rank).by_size.back();  // above 16 MiB
    EXPECT_EQ(counts.operations, 1);
    EXPECT_EQ(counts.bytes, 4 * kParameters);
    EXPECT_EQ(counts.sent_bytes, 2 * (kRanks - 1) * kParameters);
  }
}

// A short vector goes whole to every peer; a barrier sends nothing but counts.
TEST_F(CountingTest, ShortVectorsGoToEveryPeer) {
  Open(3);
  OnEveryRank(world_, [](Collective* comm) {
    double totals[2] = {1, 2};
    EXPECT_THAT(AllReduceSum(comm, std::span<double>(totals), Soon()), IsOk());
    EXPECT_THAT(Barrier(comm, Soon()), IsOk());
  });

  const OperationCounts& counts = TrafficOf(1).by_size.front();
  EXPECT_EQ(counts.operations, 2);
  EXPECT_EQ(counts.bytes, 16);
  EXPECT_EQ(counts.sent_bytes, 2 * 16);
}

// Waits take three seconds by the clock that is passed in.
class SlowCollective final : public Collective {
 public:
  explicit SlowCollective(FakeClock* clock) : Collective(0, 2), clock_(clock) {}
  std::string Describe(int) const override { return "a slow one"; }

 private:
  Request DoStartSend(Envelope, std::span<const std::byte>) override { return {.slot = 0}; }
  Request DoStartReceive(Envelope, std::span<std::byte>) override { return {.slot = 1}; }
  absl::Status DoWait(Request, MonoTime) override {
    clock_->Advance(absl::Seconds(3));
    return absl::OkStatus();
  }
  absl::Status DoClose(MonoTime) override { return absl::UnavailableError("gone"); }
  void DoAbort() override {}

  FakeClock* const clock_;
};

TEST_F(CountingTest, TimeIsThatOfOperationsAndOfWaitsWithin) {
  CountingCollective comm(std::make_unique<SlowCollective>(&clock_), &clock_);
  const std::vector<std::byte> bytes(100);
  {
    const Operation operation(&comm, bytes.size());
    EXPECT_THAT(Send(&comm, {.peer = 1}, bytes, {}), IsOk());
    const Operation inner(&comm, 5);  // a part of the other
    clock_.Advance(absl::Seconds(1));
  }
  clock_.Advance(absl::Seconds(10));  // nobody's

  EXPECT_EQ(comm.traffic().by_size[0].operations, 1);
  EXPECT_EQ(comm.traffic().by_size[0].bytes, 100);
  EXPECT_EQ(comm.traffic().by_size[0].ns, 4'000'000'000);
  EXPECT_EQ(comm.traffic().waiting_ns, 3'000'000'000);
}

TEST_F(CountingTest, AFailureStaysAFailure) {
  CountingCollective comm(std::make_unique<SlowCollective>(&clock_), &clock_);

  EXPECT_THAT(comm.Close({}), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(comm.failure(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(comm.Wait({.slot = 0}, {}), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace assay::comm
