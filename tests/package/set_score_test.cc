#include "common/package/set_score.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/rules/registry.h"
#include "tests/rules/sample_log.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/write_file.h"

namespace assay::package {
namespace {

using ::assay::testing::DeepcamLog;
using ::assay::testing::IsOk;
using ::assay::testing::SampleLog;
using ::assay::testing::TempDir;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One second of a node that draws `watts`.
std::string PowerLog(int watts) {
  const auto line = [](const std::string& key, int64_t time_ms, int value) {
    return absl::StrCat(":::MLLOG {\"namespace\": \"\", \"time_ms\": ", time_ms,
                        ", \"event_type\": \"POINT_IN_TIME\", \"key\": \"", key,
                        "\", \"value\": ", value, ", \"metadata\": {}}\n");
  };
  return line("power_measurement_start", 0, 0) + line("power_reading", 1000, watts);
}

class SetScoreTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, absl::string_view text) {
    const std::string path = dir_.Path(absl::StrCat("ORG/", name));
    CHECK_OK(MakeDirectories(path.substr(0, path.rfind('/'))));
    testing::WriteFile(path, text);
  }

  // Logs of runs that took so many seconds; negative: missed the target.
  void WriteRuns(const std::string& base, const std::vector<int>& seconds) {
    for (size_t i = 0; i < seconds.size(); ++i) {
      SampleLog log = DeepcamLog();
      const int64_t start_ms = log.TimeOf("run_start");
      log.SetTime("run_stop", start_ms + std::abs(seconds[i]) * 1000);
      if (seconds[i] < 0) log.Set("eval_accuracy", "0.5");
      Write(absl::StrCat(base, "result_", i, ".txt"), log.Text());
    }
    Write("systems/s.json",
          R"({"division": "closed", "number_of_nodes": "4", "accelerators_per_node": "8"})");
  }

  SetScore Score() {
    const auto folders = FindResultFolders(dir_.path());
    EXPECT_THAT(folders, IsOk());
    absl::StatusOr<SetScore> set = ScoreFolder(folders->at(0), *rules::FindRuleSet("3.0"));
    EXPECT_THAT(set, IsOk());
    return set.ok() ? *std::move(set) : SetScore{};
  }

  const TempDir dir_;
};

constexpr char kStrong[] = "results/s/strong/deepcam/";

TEST_F(SetScoreTest, ASetInWhichEveryRunFailsIsReported) {
  WriteRuns(kStrong, {-10, -20, -30, -40, -50});

  const SetScore set = Score();

  EXPECT_FALSE(set.is_scored());
  EXPECT_EQ(set.judged.score.dropped, 5);
  EXPECT_EQ(set.official->summary.first.minutes, std::nullopt);
  EXPECT_THAT(set.notes, Contains(HasSubstr("5 runs failed")));
}

TEST_F(SetScoreTest, AShippedFactorScalesTheFirstPassOnly) {
  WriteRuns(kStrong, {60, 60, 60, 60, 60});
  Write(absl::StrCat(kStrong, "scaling.json"), R"({"scaling_factor": 1.5})");

  const SetScore set = Score();

  EXPECT_EQ(set.judged.score.minutes, 1);
  EXPECT_EQ(set.official->summary.first.minutes, 1.5);
  // One epoch is far too fast: the check fails, and its factor goes away.
  EXPECT_EQ(set.official->summary.second.minutes, 1);
  EXPECT_EQ(set.official->summary.first.reference_word, "Fail");
}

TEST_F(SetScoreTest, ADamagedFactorIsANoteNotAnError) {
  WriteRuns(kStrong, {60, 60, 60, 60, 60});
  Write(absl::StrCat(kStrong, "scaling.json"), "{");

  EXPECT_THAT(Score().notes, Contains(HasSubstr("scaling.json")));
}

TEST_F(SetScoreTest, EnergyIsAveragedOverTheRunsOfTheScore) {
  WriteRuns(kStrong, {10, 20, 30, 40, 50});
  for (int i = 0; i < 5; ++i) {
    Write(absl::StrCat(kStrong, "power/result_", i, "/node_0.txt"), PowerLog(100));
    Write(absl::StrCat(kStrong, "power/result_", i, "/node_1.txt"), PowerLog(200));
  }

  const SetScore set = Score();

  EXPECT_THAT(set.energies, ElementsAre(3000, 6000, 9000, 12000, 15000));
  EXPECT_EQ(set.official->summary.first.energy, 9000);
}

TEST_F(SetScoreTest, DamagedPowerLogsLeaveNoEnergy) {
  WriteRuns(kStrong, {10, 20, 30, 40, 50});
  Write(absl::StrCat(kStrong, "power/result_1/node_0.txt"), "nothing");

  const SetScore set = Score();

  EXPECT_EQ(set.official->summary.first.energy, std::nullopt);
  EXPECT_THAT(set.notes, Contains(HasSubstr("power_measurement_start")));
}

TEST_F(SetScoreTest, AWeakSetHasAThroughput) {
  const std::string weak = "results/s/weak/deepcam/";
  WriteRuns(weak, {30, 60, 60, 60, 60, 60, -90});
  Write(absl::StrCat(weak, "pruned_results/result_8.txt"), "");

  const SetScore set = Score();

  EXPECT_TRUE(set.is_scored());
  EXPECT_EQ(set.judged.throughput->model_count, 6);
  EXPECT_EQ(set.judged.throughput->time_to_all_minutes, 1);
  EXPECT_EQ(set.judged.throughput->total_count(), 7);
  EXPECT_EQ(set.judged.throughput->instance_scale(), 32);
  EXPECT_EQ(set.official->throughput.model_count, 6);
  EXPECT_THAT(set.notes, Contains(HasSubstr("whole system")));
}

}  // namespace
}  // namespace assay::package
