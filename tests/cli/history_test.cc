// assay history, and assay compare of sets, on a coordinator with a series of thirty sets whose
// epochs become 20 % longer with the sixteenth, when the optimizer and a node are others.

#include "cli/history/history.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/random.h"
#include "tests/cli/fake_coordinator.h"
#include "tests/cli/invocation.h"

namespace assay {
namespace {

using cli::ExitStatus;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSets = 30;
constexpr int kChangeAt = 16;
constexpr int kRuns = 5;
constexpr int64_t kStartMs = 1'760'000'000'000;

v1::Submission MakeEntry(int number) {
  v1::Submission entry;
  entry.set_name(absl::StrCat("submissions/e-", number));
  entry.set_state(v1::Submission::VALID);
  entry.set_score_minutes(6);
  entry.mutable_scoring()->set_counts("reached_target");
  v1::SubmissionSpec* spec = entry.mutable_spec();
  spec->set_organization("Lab");
  spec->set_system("cluster-a");
  spec->set_benchmark("deepcam");
  spec->set_division("closed");
  spec->set_round("hpc-1.0.0");
  spec->set_node_count(2);
  spec->set_epoch_count_max(200);
  spec->set_staging("node");
  v1::Hyperparameter* name = spec->add_hyperparameters();
  name->set_key("opt_name");
  name->set_json_value(number < kChangeAt ? "\"sgd\"" : "\"adam\"");
  return entry;
}

v1::Run MakeRun(int entry, int number) {
  const Stream stream(11, Purpose::kTest, static_cast<uint32_t>(entry));
  v1::Run run;
  run.set_name(absl::StrCat("runs/r-", entry * 10 + number));
  run.set_submission(absl::StrCat("submissions/e-", entry));
  run.set_number(number);
  run.set_state(v1::Run::SUCCEEDED);
  run.set_is_compliant(true);
  run.set_is_converged(true);
  run.add_workers(entry < kChangeAt ? "workers/w0" : "workers/w9");
  run.set_global_batch_size(64);
  run.set_epoch_count(30 + static_cast<int>(stream.Below(static_cast<uint64_t>(number), 5)));
  const double level = entry < kChangeAt ? 10 : 12;
  const double seconds =
      level * (1 + 0.01 * static_cast<double>(stream.Normal(static_cast<uint64_t>(100 + number))));
  run.set_run_start_ms(kStartMs + int64_t{entry} * 86'400'000 + int64_t{number} * 1'000'000);
  run.set_run_stop_ms(run.run_start_ms() +
                      static_cast<int64_t>(seconds * 1000) * run.epoch_count());
  run.set_first_touch_us(run.run_start_ms() * 1000 + 3200);
  run.set_touch_after_start_us(3200);
  run.set_touch_error_us(1000);
  return run;
}

class HistoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.entries.clear();
    coordinator_.runs.clear();
    for (int entry = kSets; entry >= 1; --entry) {
      coordinator_.entries.push_back(MakeEntry(entry));
      for (int number = 1; number <= kRuns; ++number)
        coordinator_.runs.push_back(MakeRun(entry, number));
    }
    coordinator_.Start();
    run_.env.variables["ASSAY_SOCKET"] = coordinator_.socket_path();
    run_.env.width = 240;
  }

  nlohmann::json Items(const std::string& line) {
    EXPECT_EQ(run_.Run(line + " -o json"), ExitStatus::kDone) << run_.err;
    return nlohmann::json::parse(run_.out)["items"];
  }

  testing::FakeCoordinator coordinator_;
  testing::Invocation run_;
};

TEST_F(HistoryTest, SeriesJudgesEachSet) {
  const nlohmann::json series = Items("history series system=cluster-a");

  ASSERT_EQ(series.size(), 1U);
  EXPECT_EQ(series[0]["series"],
            "deepcam on cluster-a, hpc-1.0.0 closed strong, 2 units, batch 64");
  EXPECT_EQ(series[0]["set_count"], kSets);
  EXPECT_EQ(series[0]["sets"][4]["epoch_seconds_judged"]["standing"], "too_few");
  EXPECT_EQ(series[0]["sets"][10]["epoch_seconds_judged"]["standing"], "expected");
  // The change ends the level, so that its first sets are few again.
  EXPECT_EQ(series[0]["sets"][16]["epoch_seconds_judged"]["earlier_sets"], 1);

  ASSERT_EQ(run_.Run("history series -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, AllOf(HasSubstr("deepcam on cluster-a"), HasSubstr("expected")));
  ASSERT_EQ(run_.Run("history series --sets -o plain"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, AllOf(HasSubstr("e-30"), HasSubstr("too few: 0 before it")));
}

TEST_F(HistoryTest, ChangesNameTheFirstSetAndWhatDiffers) {
  const nlohmann::json changes = Items("history changes");

  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0]["measure"], "epoch_seconds");
  EXPECT_EQ(changes[0]["first_set"], "e-16");
  EXPECT_EQ(changes[0]["set_before"], "e-15");
  EXPECT_EQ(changes[0]["state"], "found");
  EXPECT_NEAR(changes[0]["ratio"].get<double>(), 1.2, 0.01);
  EXPECT_LT(changes[0]["p_value"].get<double>(), 0.001);

  ASSERT_EQ(run_.Run("history changes -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out, AllOf(HasSubstr("hyperparameters.opt_name"), HasSubstr("sgd -> adam"),
                              HasSubstr("machines w0 -> w9"), Not(HasSubstr("dataset"))));
}

TEST_F(HistoryTest, AVetoIsANoteWithItsAuthor) {
  EXPECT_EQ(run_.Run("history veto e-16"), ExitStatus::kUsage);
  ASSERT_EQ(run_.RunWords({"history", "veto", "e-16", "--reason", "two nodes were down"}),
            ExitStatus::kDone)
      << run_.err;

  const nlohmann::json vetoed = Items("history changes");
  ASSERT_EQ(vetoed.size(), 1U);
  EXPECT_EQ(vetoed[0]["state"], "vetoed");
  EXPECT_EQ(vetoed[0]["author"], "rita");
  EXPECT_EQ(vetoed[0]["reason"], "two nodes were down");

  ASSERT_EQ(
      run_.RunWords({"history", "mark", "e-8", "--reason", "new switch", "--measure", "epochs"}),
      ExitStatus::kDone)
      << run_.err;
  const nlohmann::json both = Items("history changes");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1]["measure"], "epochs");
  EXPECT_EQ(both[1]["first_set"], "e-8");
  EXPECT_EQ(both[1]["state"], "marked");
}

TEST_F(HistoryTest, TrendsBreakAndGoByAliases) {
  v1::Submission older = MakeEntry(1);
  older.set_name("submissions/e-99");
  older.mutable_spec()->set_round("hpc-0.7.0");
  older.mutable_spec()->set_system("cluster_A");
  older.set_score_minutes(12);
  v1::Submission newer = older;
  newer.set_name("submissions/e-100");
  newer.mutable_spec()->set_round("hpc-2.0.0");
  coordinator_.entries.push_back(older);
  coordinator_.entries.insert(coordinator_.entries.begin(), newer);

  const nlohmann::json apart = Items("history trend --by system");
  EXPECT_EQ(run_.RunWords({"history", "alias", "add", "planet", "a", "b", "--reason", "c"}),
            ExitStatus::kUsage);
  // The fake lists entries whatever the filter: the newest one has to bear the name.
  ASSERT_EQ(run_.RunWords({"history", "alias", "add", "system", "cluster_A", "cluster-a",
                           "--reason", "one machine"}),
            ExitStatus::kDone)
      << run_.err;
  const nlohmann::json joined = Items("history trend --by system");
  const nlohmann::json aliases = Items("history alias list");

  ASSERT_EQ(apart.size(), 3U);
  EXPECT_FALSE(apart[0].contains("speedup"));
  ASSERT_EQ(joined.size(), 3U);
  EXPECT_EQ(joined[1]["round"], "hpc-1.0.0");
  EXPECT_EQ(joined[1]["speedup"], 2);
  EXPECT_THAT(joined[2]["break"].get<std::string>(), HasSubstr("hpc-2.0.0"));
  ASSERT_EQ(aliases.size(), 1U);
  EXPECT_EQ(aliases[0]["known_as"], "cluster-a");
  EXPECT_EQ(aliases[0]["author"], "rita");

  ASSERT_EQ(run_.RunWords({"history", "alias", "remove", "system", "cluster_A", "--reason", "no"}),
            ExitStatus::kDone);
  EXPECT_EQ(Items("history alias list").size(), 0U);
}

TEST_F(HistoryTest, CompareSaysWhichSetIsFasterAndWhy) {
  ASSERT_EQ(run_.Run("compare e-20 e-10 -o table"), ExitStatus::kDone) << run_.err;
  EXPECT_THAT(run_.out,
              AllOf(HasSubstr("because its epochs are shorter"), HasSubstr("seconds per epoch"),
                    Not(HasSubstr("epochs to target  "))));
  EXPECT_THAT(run_.err, HasSubstr("do not differ significantly; --all shows them"));

  ASSERT_EQ(run_.Run("compare e-20 e-10 -o json"), ExitStatus::kDone);
  const nlohmann::json comparison = nlohmann::json::parse(run_.out)["comparison"];
  EXPECT_EQ(comparison["measures"][2]["measure"], "epoch_seconds");
  EXPECT_NEAR(comparison["measures"][2]["ratio"].get<double>(), 10.0 / 12, 0.02);
  EXPECT_TRUE(comparison["measures"][2]["is_significant"].get<bool>());
  EXPECT_EQ(comparison["seed"], 1);
}

TEST_F(HistoryTest, CompareOfTwoFiltersTakesTheRunsOfAllTheirEntries) {
  // The fake matches texts alone.
  for (v1::Submission& entry : coordinator_.entries)
    if (entry.spec().hyperparameters(0).json_value() == "\"adam\"")
      entry.mutable_spec()->set_division("open");
  ASSERT_EQ(run_.Run("compare --set division=open --set division=closed -o json"),
            ExitStatus::kDone)
      << run_.err;
  const nlohmann::json comparison = nlohmann::json::parse(run_.out);
  EXPECT_EQ(comparison["runs_a"], (kSets - kChangeAt + 1) * kRuns);
  EXPECT_EQ(comparison["runs_b"], (kChangeAt - 1) * kRuns);
  EXPECT_EQ(comparison["sets"][1]["entries"].size(), kChangeAt - 1);
  EXPECT_NEAR(comparison["measures"][2]["ratio"].get<double>(), 10.0 / 12, 0.01);
  EXPECT_TRUE(comparison["measures"][2]["is_significant"].get<bool>());
  EXPECT_THAT(comparison["sentence"].get<std::string>(), HasSubstr("than set A"));

  ASSERT_EQ(run_.Run("compare --set division=open --set division=closed -o table"),
            ExitStatus::kDone);
  EXPECT_THAT(run_.out, HasSubstr("seconds per epoch"));
  EXPECT_THAT(run_.err, HasSubstr("set B: 15 entries, 75 runs, of division=closed"));
}

TEST_F(HistoryTest, CompareRefusesSetsThatCannotBeCompared) {
  EXPECT_EQ(run_.Run("compare --set division=closed"), ExitStatus::kUsage);
  EXPECT_EQ(run_.Run("compare --set system=x --set division=closed"), ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr("set A is empty"));
  EXPECT_EQ(run_.Run("compare --set system=cluster-a --set division=closed"), ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr("is in both sets"));
  coordinator_.entries.front().mutable_spec()->set_benchmark("cosmoflow");
  EXPECT_EQ(run_.Run("compare --set benchmark=deepcam --set benchmark=cosmoflow"),
            ExitStatus::kUsage);
  EXPECT_THAT(run_.err, HasSubstr("is of another benchmark or metric"));
  EXPECT_EQ(run_.Run("compare"), ExitStatus::kUsage);
}

// Issue 16: both were hidden.
TEST_F(HistoryTest, EpochsMaxAndStagingAreShown) {
  coordinator_.entries.back().mutable_spec()->set_epoch_count_max(100);

  ASSERT_EQ(run_.Run("entry show e-2 -o json"), ExitStatus::kDone) << run_.err;
  const nlohmann::json entry = nlohmann::json::parse(run_.out);
  ASSERT_EQ(run_.Run("compare e-1 e-2 -o plain"), ExitStatus::kDone) << run_.err;

  EXPECT_EQ(entry["epochs_max"], 200);
  EXPECT_EQ(entry["staging"], "node");
  EXPECT_THAT(run_.out, HasSubstr("epochs_max\t100\t200"));
}

// One figure with its error in all places.
TEST_F(HistoryTest, TheFirstTouchIsTheSameEverywhere) {
  const nlohmann::json run = nlohmann::json::parse([this] {
    run_.Run("run show r-11 -o json");
    return run_.out;
  }());
  run_.Run("score e-1 -o json");
  const nlohmann::json score = nlohmann::json::parse(run_.out);

  EXPECT_EQ(run["touch_after_run_start_ms"], 3.2);
  EXPECT_EQ(run["touch_error_ms"], 1);
  EXPECT_EQ(score["run_details"][0]["touch_after_run_start_ms"], 3.2);
  EXPECT_EQ(score["run_details"][0]["touch"], "+3.2 ms +-1.0 ms");
}

}  // namespace
}  // namespace assay
