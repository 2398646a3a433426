#include "common/analysis/trend.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/analysis/compatibility.h"

namespace assay::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// The published table: the two columns of HPC, their only joined cell, and its end.
TEST(CompatibilityTest, SaysWhatTheTableSays) {
  EXPECT_EQ(WhyNotComparable("deepcam", "hpc-0.7.0", "hpc-1.0.0"), "");
  EXPECT_EQ(WhyNotComparable("deepcam", "hpc-1.0.0", "hpc-0.7.0"), "");
  EXPECT_EQ(WhyNotComparable("cosmoflow", "hpc-0.7.0", "hpc-0.7.0"), "");
  EXPECT_EQ(WhyNotComparable("mine", "lab-1", "lab-1"), "");
  EXPECT_THAT(WhyNotComparable("cosmoflow", "hpc-0.7.0", "hpc-1.0.0"), HasSubstr("does not join"));
  EXPECT_THAT(WhyNotComparable("deepcam", "hpc-1.0.0", "hpc-2.0.0"), HasSubstr("no round"));
  EXPECT_THAT(WhyNotComparable("deepcam", "hpc-2.0.0", "hpc-3.0.0"), HasSubstr("no round"));
  EXPECT_THAT(WhyNotComparable("oc20", "hpc-0.7.0", "hpc-1.0.0"), HasSubstr("does not join"));
}

RoundResult Result(const std::string& round, const std::string& organization, double value) {
  return {.entry = organization + round,
          .organization = organization,
          .benchmark = "deepcam",
          .division = "closed",
          .round = round,
          .round_order = round == "hpc-0.7.0" ? 0 : (round == "hpc-1.0.0" ? 1 : 2),
          .value = value};
}

TEST(TrendTest, BreaksWhereRoundsAreNotComparable) {
  const std::vector<Trend> trends =
      TrendsOf({Result("hpc-2.0.0", "A", 2), Result("hpc-0.7.0", "A", 12),
                Result("hpc-0.7.0", "B", 10), Result("hpc-1.0.0", "B", 5)},
               TrendBy::kBenchmark);

  ASSERT_THAT(trends, SizeIs(1));
  ASSERT_THAT(trends[0].points, SizeIs(3));
  EXPECT_EQ(trends[0].points[0].best.organization, "B");
  EXPECT_EQ(trends[0].points[0].result_count, 2);
  EXPECT_FALSE(trends[0].points[0].speedup.has_value());
  EXPECT_EQ(trends[0].points[1].speedup, 2);
  EXPECT_FALSE(trends[0].points[2].speedup.has_value());
  EXPECT_THAT(trends[0].points[2].why_not, HasSubstr("hpc-2.0.0"));
}

TEST(TrendTest, OfThroughputMoreIsBetter) {
  RoundResult one = Result("hpc-0.7.0", "A", 1);
  RoundResult two = Result("hpc-1.0.0", "A", 3);
  RoundResult less = Result("hpc-1.0.0", "A", 2);
  one.is_weak = two.is_weak = less.is_weak = true;

  const std::vector<Trend> trends = TrendsOf({one, less, two}, TrendBy::kOrganization);

  ASSERT_THAT(trends, SizeIs(1));
  EXPECT_EQ(trends[0].name, "A");
  EXPECT_EQ(trends[0].points[1].best.value, 3);
  EXPECT_EQ(trends[0].points[1].speedup, 3);
}

}  // namespace
}  // namespace assay::analysis
