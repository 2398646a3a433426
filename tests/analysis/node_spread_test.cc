#include "common/analysis/node_spread.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::analysis {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

constexpr double kTiny = 1e-9;

PlacedRun RunOn(const std::string& set, std::vector<std::string> nodes, int64_t start_ms,
                double run_s, double epochs = 10) {
  return {.set = set,
          .nodes = std::move(nodes),
          .start_ms = start_ms,
          .run_s = run_s,
          .epochs = epochs};
}

TEST(NodeSpreadTest, ASlowNodeComesFirst) {
  // Gangs with c take 20 % longer, whichever their other node is.
  const PlacedRun runs[] = {RunOn("s-1", {"a", "b"}, 1, 100), RunOn("s-1", {"a", "b"}, 2, 100),
                            RunOn("s-1", {"a", "b"}, 3, 100), RunOn("s-2", {"a", "c"}, 1, 120),
                            RunOn("s-3", {"b", "c"}, 1, 120)};
  const SpreadReport report = SpreadOf(runs);

  EXPECT_EQ(report.set_count, 3);
  EXPECT_EQ(report.run_count, 5);
  EXPECT_NEAR(report.epoch_s_median, 10, kTiny);
  ASSERT_EQ(report.by_node.size(), 3u);
  EXPECT_EQ(report.by_node[0].name, "c");
  EXPECT_NEAR(report.by_node[0].ratio.mean, 1.2, kTiny);
  EXPECT_NEAR(report.by_node[1].ratio.mean, 1.05, kTiny);
  EXPECT_NEAR(report.by_node[1].ratio_max, 1.2, kTiny);
}

TEST(NodeSpreadTest, ASlowFirstRunShowsWhateverTheSpeedOfItsSet) {
  std::vector<PlacedRun> runs;
  for (int set = 0; set < 4; ++set) {
    const double speed = 1 + set;
    // Given in another order than they ran in.
    for (const int position : {2, 0, 1})
      runs.push_back(
          RunOn(absl::StrCat("s-", set), {"a"}, position, (position == 0 ? 110 : 100) * speed));
  }
  const SpreadReport report = SpreadOf(runs);

  EXPECT_THAT(report.by_position,
              ElementsAre(Field(&SpreadRow::name, "1"), Field(&SpreadRow::name, "2"),
                          Field(&SpreadRow::name, "3")));
  EXPECT_NEAR(report.by_position[0].ratio.mean, 1.1, kTiny);
  EXPECT_EQ(report.by_position[0].ratio.count, 4);
  EXPECT_THAT(report.by_position[0].ratio.sd, ::testing::Optional(DoubleNear(0, kTiny)));
  EXPECT_NEAR(report.by_position[2].ratio.mean, 1.0, kTiny);
}

TEST(NodeSpreadTest, MoreEpochsAreNoSlowerNode) {
  const PlacedRun runs[] = {RunOn("s-1", {"a"}, 1, 100, 10), RunOn("s-1", {"b"}, 2, 200, 20)};
  for (const SpreadRow& row : SpreadOf(runs).by_node)
    EXPECT_NEAR(row.ratio.mean, 1, kTiny);
}

TEST(NodeSpreadTest, RunsWithoutATimeAreLeftOut) {
  const PlacedRun runs[] = {RunOn("s-1", {"a"}, 1, 0), RunOn("s-1", {"a"}, 2, 10, 0)};
  const SpreadReport report = SpreadOf(runs);
  EXPECT_EQ(report.run_count, 0);
  EXPECT_THAT(report.by_node, IsEmpty());
  EXPECT_THAT(report.by_position, IsEmpty());
}

TEST(NodeSpreadTest, ASetOfOneRunHasNoPositions) {
  const PlacedRun runs[] = {RunOn("s-1", {"a"}, 1, 10)};
  EXPECT_THAT(SpreadOf(runs).by_position, IsEmpty());
}

}  // namespace
}  // namespace assay::analysis
