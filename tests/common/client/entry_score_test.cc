#include "common/client/entry_score.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

v1::Submission Entry(int required_runs) {
  v1::Submission entry;
  entry.set_name("submissions/e-1");
  entry.mutable_spec()->set_round("hpc-3.0.0");
  entry.mutable_spec()->set_benchmark("deepcam");
  entry.set_required_run_count(required_runs);
  return entry;
}

v1::Run InState(v1::Run::State state) {
  v1::Run run;
  run.set_state(state);
  return run;
}

v1::Run Good(double minutes, int epochs = 25) {
  v1::Run run = InState(v1::Run::SUCCEEDED);
  run.set_is_compliant(true);
  run.set_is_converged(true);
  run.set_run_start_ms(1000);
  run.set_run_stop_ms(1000 + static_cast<int64_t>(minutes * 60000));
  run.set_epoch_count(epochs);
  run.set_global_batch_size(2048);
  return run;
}

Json Texts(const v1::Submission& entry, const std::vector<v1::Run>& runs) {
  Json json = Json::object();
  const EntryScore score = ScoreOfEntry(entry, runs);
  AddScore(score, &json);
  AddTexts(entry, score, &json);
  return json;
}

// What a facility's round says counts, not what a built-in one would.
TEST(EntryScoreTest, AnEntryIsScoredAsItsRoundSays) {
  v1::Submission entry = Entry(3);
  entry.mutable_spec()->set_round("own-round");
  std::vector<v1::Run> runs = {Good(10), Good(20), Good(30)};
  runs[1].set_is_compliant(false);

  EXPECT_EQ(ScoreOfEntry(entry, runs).window.score.dropped, 1) << "told by nobody: as the newest";
  entry.mutable_scoring()->set_counts("reached_target");
  entry.mutable_scoring()->set_failed_runs_allowed(0);
  EXPECT_EQ(ScoreOfEntry(entry, runs).window.score.minutes, 20);

  runs[0].set_is_converged(false);
  EXPECT_EQ(ScoreOfEntry(entry, runs).window.score.minutes, std::nullopt) << "none may fail";
}

TEST(EntryScoreTest, AReplacedRunIsSeenButNotScored) {
  const std::vector<v1::Run> runs = {
      Good(10), InState(v1::Run::FAILED), Good(20), Good(30), Good(40), Good(50)};

  const EntryScore score = ScoreOfEntry(Entry(5), runs);

  EXPECT_EQ(score.window.score.minutes, 30);
  EXPECT_THAT(score.parts, ElementsAre("dropped: fastest", "failed: not judged", "counts", "counts",
                                       "counts", "dropped: slowest"));
  EXPECT_EQ(Texts(Entry(5), runs)["attempts"]["failed"], 1);
  EXPECT_EQ(Texts(Entry(5), runs)["attempts_text"],
            "6 runs: 5 judged, 1 failed, 0 cancelled, 0 to come");
}

TEST(EntryScoreTest, TheEarliestFirstTouchStandsWithItsBound) {
  std::vector<v1::Run> runs = {Good(10), Good(20), Good(30)};
  for (v1::Run& run : runs) {
    run.set_touch_assurance("observed");
    run.set_first_touch_us(run.run_start_ms() * 1000 + 9000);
    run.set_touch_after_start_us(9000);
    run.set_touch_error_us(100);
  }
  runs[2].set_touch_after_start_us(1300);
  runs[2].set_touch_error_us(5900);
  const Json json = Texts(Entry(3), runs);
  EXPECT_EQ(json["touch_text"], "observed; the earliest 1.3 ms after run_start, +-5.9 ms");
  EXPECT_EQ(json["touch_after_run_start_ms"], 1.3);
  EXPECT_EQ(json["touch_error_ms"], 5.9);

  // Judged by a coordinator of before: nobody knows how far it may be off.
  runs[1].clear_touch_after_start_us();
  runs[1].set_first_touch_us(runs[1].run_start_ms() * 1000 - 2000);
  EXPECT_EQ(Texts(Entry(3), runs)["touch_text"], "observed; the earliest 2.0 ms before run_start");
  EXPECT_FALSE(Texts(Entry(3), runs).contains("touch_error_ms"));
}

TEST(EntryScoreTest, FirstTouchesAreAsGoodAsTheWeakestThatCounts) {
  std::vector<v1::Run> runs = {Good(10), InState(v1::Run::FAILED), Good(20), Good(30)};
  for (v1::Run& run : runs)
    run.set_touch_assurance("proven");
  EXPECT_EQ(Texts(Entry(3), runs)["touch_text"], "proven");

  runs[1].set_touch_assurance("self-reported");  // of a run that does not count
  runs[2].set_touch_assurance("observed");
  runs[2].add_touch_hole_codes("W-STAGED");
  runs[3].add_touch_hole_codes("W-DEVICE");
  const Json json = Texts(Entry(3), runs);
  EXPECT_EQ(json["touch_assurance"], "observed");
  EXPECT_THAT(json["touch_hole_codes"], ElementsAre("W-DEVICE", "W-STAGED"));
  EXPECT_EQ(json["touch_text"],
            "observed in 1 of 3 runs, better in the others; holes: W-DEVICE W-STAGED");

  runs[0].clear_touch_assurance();
  EXPECT_EQ(Texts(Entry(3), runs)["touch_assurance"], "self-reported")
      << "of what nothing was written down the log alone speaks";
  EXPECT_FALSE(Texts(Entry(3), {}).contains("touch_assurance"));
}

TEST(EntryScoreTest, RunsUnderWayGiveBounds) {
  const std::vector<v1::Run> runs = {Good(10), Good(20), Good(30), Good(40),
                                     InState(v1::Run::RUNNING)};

  const Json json = Texts(Entry(5), runs);

  EXPECT_EQ(json["preview"]["least_minutes"], 20);
  EXPECT_EQ(json["preview"]["most_minutes"], 30);
  EXPECT_THAT(json["preview_text"].get<std::string>(), HasSubstr("possible 20.00 to 30.00 min"));
  EXPECT_FALSE(json.contains("interval"));
}

TEST(EntryScoreTest, OfMoreRunsThanDemandedAWindowCounts) {
  const std::vector<v1::Run> runs = {Good(1),  Good(20), Good(21), Good(22),
                                     Good(23), Good(24), Good(80)};
  const v1::Submission entry = Entry(5);

  const EntryScore score = ScoreOfEntry(entry, runs);

  EXPECT_EQ(score.window.score.minutes, 22);
  EXPECT_EQ(score.parts[0], "outside the window");
  EXPECT_EQ(score.parts[6], "outside the window");
  EXPECT_THAT(RunsThatCount(entry, runs), SizeIs(5));
  EXPECT_THAT(Texts(entry, runs)["window_text"].get<std::string>(), HasSubstr("runs 2 to 6 of 7"));
}

TEST(EntryScoreTest, ImportedHistoryIsScoredAsItWas) {
  v1::Submission entry = Entry(5);
  entry.set_is_imported(true);
  const std::vector<v1::Run> runs(7, Good(20));

  EXPECT_THAT(RunsThatCount(entry, runs), SizeIs(7));
  EXPECT_EQ(ScoreOfEntry(entry, runs).window.windows, 0);
}

TEST(EntryScoreTest, ConvergenceIsComparedWithTheReference) {
  const Json passed = Texts(Entry(5), std::vector<v1::Run>(5, Good(20, 22)));
  EXPECT_EQ(passed["convergence"]["passed"], true);
  EXPECT_THAT(passed["reference_text"].get<std::string>(),
              HasSubstr("the score is to be multiplied with 1.0284"));

  const Json failed = Texts(Entry(5), std::vector<v1::Run>(5, Good(20, 12)));
  EXPECT_EQ(failed["convergence"]["passed"], false);
}

TEST(EntryScoreTest, TheCoordinatorsVerdictStandsAsItIs) {
  v1::Submission entry = Entry(5);
  v1::ReferenceConvergence* reference = entry.mutable_reference();
  reference->set_is_passed(true);
  reference->set_verdict("Pass");
  reference->set_message("RCP found");
  reference->set_normalization(1.25);
  reference->set_normalized_score_minutes(25);

  const Json json = Texts(entry, std::vector<v1::Run>(5, Good(20, 12)));

  EXPECT_EQ(json["convergence"]["passed"], true) << "it was judged by the coordinator already";
  EXPECT_EQ(json["reference_text"],
            "Pass: RCP found; the score is to be multiplied with 1.2500: 25.00 min");
}

TEST(EntryScoreTest, TheOpenDivisionHasNoReference) {
  v1::Submission entry = Entry(5);
  entry.mutable_spec()->set_division("open");

  EXPECT_FALSE(Texts(entry, std::vector<v1::Run>(5, Good(20))).contains("convergence"));
}

TEST(EntryScoreTest, AThroughputSetHasNoOlympicParts) {
  v1::Submission entry = Entry(5);
  entry.set_scaling("weak");
  entry.set_is_imported(true);
  entry.mutable_throughput()->set_model_count(3);
  entry.mutable_throughput()->set_instance_scale(16);
  entry.mutable_throughput()->set_time_to_all_minutes(2);
  entry.mutable_throughput()->set_models_per_minute(1.5);
  v1::Run failed = Good(3);
  failed.set_is_compliant(false);

  EXPECT_THAT(ScoreOfEntry(entry, {Good(1), Good(2), failed}).parts,
              ElementsAre("counts", "counts", "fails"));
  EXPECT_THAT(Texts(entry, {Good(1), Good(2)})["score_text"].get<std::string>(),
              HasSubstr("1.5000 models/min: 3 models of 16 units"));
}

}  // namespace
}  // namespace assay::client
