#include "common/rules/throughput.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kMinuteMs = 60000;

ModelRun Model(double start_minutes, double stop_minutes, int64_t scale = 16) {
  return {.compliant = true,
          .run_start_ms = start_minutes * kMinuteMs,
          .run_stop_ms = stop_minutes * kMinuteMs,
          .instance_scale = scale};
}

TEST(ThroughputTest, CountsModelsFromTheFirstStartToTheLastStop) {
  const std::vector<ModelRun> runs = {Model(2, 9), Model(1, 8), Model(1.5, 11)};

  const Throughput score = ScoreThroughput(runs, 3, 2);

  EXPECT_TRUE(score.is_scored);
  EXPECT_EQ(score.model_count, 3);
  EXPECT_EQ(score.total_count(), 5);
  EXPECT_EQ(score.time_to_all_minutes, 10);
  EXPECT_EQ(score.instance_scale(), 16);
  EXPECT_DOUBLE_EQ(score.models_per_minute(), 0.3);
}

TEST(ThroughputTest, FailedModelsNeitherCountNorStretchTheTime) {
  ModelRun failed = Model(0, 100);
  failed.compliant = false;
  const std::vector<ModelRun> runs = {Model(1, 3), failed, failed, Model(1, 2)};

  const Throughput score = ScoreThroughput(runs, 2, 0);

  EXPECT_EQ(score.failed_count, 2);
  EXPECT_EQ(score.time_to_all_minutes, 2);
}

TEST(ThroughputTest, TooFewModelsLeaveNoScore) {
  const Throughput score = ScoreThroughput(std::vector<ModelRun>{Model(1, 2)}, 5, 0);

  EXPECT_FALSE(score.is_scored);
  EXPECT_THAT(score.reason, HasSubstr("only 1 of at least 5"));
  EXPECT_FALSE(ScoreThroughput({}, 0, 0).is_scored);
}

TEST(ThroughputTest, LogsThatDisagreeOnTheScaleLeaveNoScore) {
  const Throughput score =
      ScoreThroughput(std::vector<ModelRun>{Model(1, 2, 16), Model(1, 2, 8)}, 2, 0);

  EXPECT_FALSE(score.is_scored);
  EXPECT_THAT(score.instance_scales, ElementsAre(8, 16));
  EXPECT_EQ(score.instance_scale(), std::nullopt);
}

TEST(ThroughputTest, AcceleratorsOfACpuSystemCountAsOne) {
  Facts facts;
  facts.number_of_nodes = JsonValue(128);
  facts.accelerators_per_node = JsonValue(0);
  EXPECT_EQ(InstanceScale(facts), 128);
  facts.accelerators_per_node = JsonValue(8.0);
  EXPECT_EQ(InstanceScale(facts), 1024);
  facts.number_of_nodes = JsonValue("128");
  EXPECT_EQ(InstanceScale(facts), std::nullopt);
}

TEST(ThroughputTest, ScalesMustFitTheSystem) {
  const Throughput score =
      ScoreThroughput(std::vector<ModelRun>{Model(1, 2, 16), Model(1, 2, 16)}, 2, 1);

  EXPECT_THAT(CheckScales(score, 48), IsEmpty());
  EXPECT_THAT(CheckScales(score, 49), ElementsAre(HasSubstr("more than the M * S = 3 * 16")));
  EXPECT_THAT(CheckScales(score, 16), ElementsAre(HasSubstr("whole system")));
  EXPECT_THAT(CheckScales(score, 8), SizeIs(1));
  EXPECT_THAT(CheckScales(score, std::nullopt), IsEmpty());
}

}  // namespace
}  // namespace assay::rules
