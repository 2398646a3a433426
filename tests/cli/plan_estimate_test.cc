#include "cli/entry/plan_estimate.h"

#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;

v1::SubmissionSpec SpecOf(int32_t runs, int32_t nodes) {
  v1::SubmissionSpec spec;
  spec.set_benchmark("cosmoflow");
  spec.set_system("hal");
  spec.set_run_count(runs);
  spec.set_node_count(nodes);
  return spec;
}

// The example of design: ten runs of 7.4 min on 16 nodes.
TEST(PlanEstimateTest, RunsOfASetFollowEachOther) {
  const client::Json json = EstimateJson(
      SpecOf(10, 16), {{"e-1", 6.8, 1.44e7}, {"e-1", 8.0, 1.52e7}, {"e-2", 7.4, std::nullopt}});

  EXPECT_DOUBLE_EQ(json["run_minutes"], 7.4);
  EXPECT_NEAR(json["run_minutes_deviation"].get<double>(), 0.6, 1e-9);
  EXPECT_NEAR(json["wall_minutes"].get<double>(), 74, 1e-9);
  EXPECT_NEAR(json["node_hours"].get<double>(), 19.7, 0.05);
  EXPECT_DOUBLE_EQ(json["energy_joules"], 1.48e8);
  EXPECT_EQ(json["summary"],
            "10 runs of 7.4 +-0.6 min: 1 h 14 min, 19.7 node-hours, 41.1 kWh (by 3 earlier runs of "
            "e-1, e-2)");
}

TEST(PlanEstimateTest, SaysHowMuchIsStaging) {
  v1::SubmissionSpec spec = SpecOf(3, 2);
  const std::vector<EarlierRun> earlier = {
      {"e-1", 6, std::nullopt, 60}, {"e-1", 6, std::nullopt, 30}, {"e-1", 6}};

  const client::Json json = EstimateJson(spec, earlier);
  EXPECT_DOUBLE_EQ(json["staging_minutes"], 0.75);
  EXPECT_THAT(json["summary"].get<std::string>(),
              HasSubstr("3 runs of 6.0 +-0.0 min, 0.75 of it staging: 18.0 min"));
  spec.set_staging("none");
  EXPECT_FALSE(EstimateJson(spec, earlier).contains("staging_minutes"));
}

TEST(PlanEstimateTest, InstancesRunSideBySide) {
  v1::SubmissionSpec spec = SpecOf(20, 4);
  spec.set_metric("throughput");

  const client::Json json = EstimateJson(spec, {{"e-1", 30, std::nullopt}});

  EXPECT_DOUBLE_EQ(json["wall_minutes"], 30);
  EXPECT_DOUBLE_EQ(json["node_hours"], 40);
  EXPECT_FALSE(json.contains("energy_joules"));
}

TEST(PlanEstimateTest, SaysWhatIsUnknown) {
  const client::Json json = EstimateJson(SpecOf(1, 1), {});

  EXPECT_EQ(json.size(), 1u);
  EXPECT_THAT(json["summary"].get<std::string>(),
              HasSubstr("unknown: no run of cosmoflow on hal with this dataset and 1 node has"));
}

}  // namespace
}  // namespace assay::cli
