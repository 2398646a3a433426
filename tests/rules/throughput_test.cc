#include "common/rules/throughput.h"

#include <algorithm>
#include <map>
#include <random>
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

TEST(ThroughputTest, PruningLeavesOutWhoStretchesTheTime) {
  ModelRun failed = Model(0, 100);
  failed.compliant = false;
  const std::vector<ModelRun> runs = {Model(2, 9), failed, Model(1, 20), Model(2, 10), Model(5, 8)};

  const std::vector<Pruning> prunings = Prunings(runs, 2);

  ASSERT_THAT(prunings, SizeIs(3));
  EXPECT_EQ(prunings[0].time_to_all_minutes, 19);
  EXPECT_THAT(prunings[0].left_out, IsEmpty());
  EXPECT_EQ(prunings[1].time_to_all_minutes, 8);
  EXPECT_THAT(prunings[1].left_out, ElementsAre(2));
  EXPECT_EQ(prunings[2].time_to_all_minutes, 7);
  EXPECT_THAT(prunings[2].left_out, ElementsAre(2, 3));
  EXPECT_THAT(Prunings(runs, 5), IsEmpty()) << "four count";
}

// What remains is scored, and no other subset of its size takes less time.
TEST(ThroughputTest, NoOtherPruningIsBetter) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto minutes = [&](unsigned most) { return static_cast<double>(random() % (most + 1)); };
  for (int round = 0; round < 200; ++round) {
    std::vector<ModelRun> runs(1 + random() % 8);
    for (ModelRun& run : runs) {
      const double start = minutes(6);
      run = Model(start, start + 1 + minutes(9));
      run.compliant = random() % 5 != 0;
    }
    std::map<int, double> least;
    for (unsigned subset = 1; subset < 1u << runs.size(); ++subset) {
      std::vector<ModelRun> kept;
      for (size_t i = 0; i < runs.size(); ++i)
        if ((subset >> i & 1) != 0 && runs[i].compliant) kept.push_back(runs[i]);
      const Throughput score = ScoreThroughput(kept, 1, 0);
      if (!score.is_scored) continue;
      const auto it = least.try_emplace(score.model_count, *score.time_to_all_minutes).first;
      it->second = std::min(it->second, *score.time_to_all_minutes);
    }
    const std::vector<Pruning> prunings = Prunings(runs, 1);
    ASSERT_EQ(prunings.size(), least.size());
    for (const Pruning& pruning : prunings) {
      EXPECT_EQ(pruning.time_to_all_minutes, least.at(pruning.model_count));
      std::vector<ModelRun> kept = runs;
      for (const size_t i : pruning.left_out)
        kept[i].compliant = false;
      const Throughput score = ScoreThroughput(kept, 1, 0);
      EXPECT_EQ(score.model_count, pruning.model_count);
      EXPECT_EQ(score.time_to_all_minutes, pruning.time_to_all_minutes);
    }
  }
}

}  // namespace
}  // namespace assay::rules
