// The nodes of a gang measure how fast they reach each other, each as a thread here.

#include "worker/trainer/fabric.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "worker/comm/rendezvous_server.h"
#include "worker/trainer/all_reduce_times.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FabricMeasureTest : public ::testing::TestWithParam<int> {
 protected:
  // What the ranks named report, of a gang of `node_count`.
  std::vector<v1::FabricReport> Measure(int node_count, const std::vector<int>& ranks) {
    std::vector<v1::FabricReport> reports(ranks.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < ranks.size(); ++i)
      threads.emplace_back([this, i, node_count, rank = ranks[i], &reports] {
        v1::FabricSpec spec = spec_;
        spec.set_rank(rank);
        spec.set_node_count(node_count);
        reports[i] = MeasureFabric(spec, sizes_, &clock_);
      });
    for (std::thread& thread : threads)
      thread.join();
    return reports;
  }
  void SetUp() override {
    spec_.set_name("preflight-7");
    const auto server = comm::RendezvousServer::Start({.token = "x"}, &clock_);
    ASSERT_TRUE(server.ok()) << server.status();
    spec_.set_rendezvous_address((*server)->address());  // free again at once
    spec_.set_token("nobody else's");
    spec_.mutable_time_limit()->set_seconds(60);
  }

  const RealClock clock_{};
  v1::FabricSpec spec_;
  FabricSizes sizes_{.bytes = 1 << 20, .round_count = 5};
};

TEST_P(FabricMeasureTest, RankZeroHasTheNumbersOfAllLinks) {
  std::vector<int> ranks;
  for (int rank = 0; rank < GetParam(); ++rank)
    ranks.push_back(rank);
  const std::vector<v1::FabricReport> reports = Measure(GetParam(), ranks);
  const v1::FabricReport& root = reports.front();
  EXPECT_EQ(root.error(), "");
  EXPECT_THAT(root.absent_ranks(), IsEmpty());
  EXPECT_GT(root.all_reduce_us(), 0);
  EXPECT_GT(root.all_reduce_gb_per_s(), 0);
  ASSERT_THAT(root.links(), SizeIs(GetParam()));
  for (const v1::FabricLink& link : root.links()) {
    EXPECT_GT(link.latency_us(), 0) << root.DebugString();
    EXPECT_GT(link.gb_per_s(), 0) << root.DebugString();
  }
  EXPECT_THAT(reports.back().links(), IsEmpty());
}
// Of two there is one link; an odd ring needs a third phase.
INSTANTIATE_TEST_SUITE_P(Gangs, FabricMeasureTest, ::testing::Values(2, 3, 4, 5));

TEST_F(FabricMeasureTest, SumsOfEachSizeAreTimed) {
  const std::vector<int64_t> sizes = {4, 40'000};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      v1::FabricSpec spec = spec_;
      spec.set_rank(rank);
      spec.set_node_count(3);
      const absl::StatusOr<std::vector<AllReduceTime>> times =
          MeasureAllReduces(spec, sizes, &clock_);
      ASSERT_TRUE(times.ok()) << times.status();
      ASSERT_THAT(*times, SizeIs(2));
      for (size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_EQ((*times)[i].bytes, sizes[i]);
        EXPECT_GT((*times)[i].median_us, 0);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
}

TEST_F(FabricMeasureTest, WhoDoesNotComeIsNamed) {
  sizes_.patience = absl::Seconds(1);
  const std::vector<v1::FabricReport> reports = Measure(4, {0, 2});
  EXPECT_THAT(reports.front().absent_ranks(), ElementsAre(1, 3));
  EXPECT_THAT(reports.front().links(), IsEmpty());
  EXPECT_EQ(reports.front().error(), "");
}

TEST_F(FabricMeasureTest, AloneRankZeroMissesAllAndTheOthersMissIt) {
  sizes_.patience = absl::Milliseconds(200);
  EXPECT_THAT(Measure(3, {0}).front().absent_ranks(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace assay
