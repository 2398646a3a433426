#include "worker/agent/run_recorder.h"

#include <fcntl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "common/exit_code.h"
#include "common/file.h"
#include "common/rules/check.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/agent/run_fixture.h"
#include "worker/agent/step_process.h"

namespace assay::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeClock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::IsOk;
using ::testing::Not;
using ::testing::SizeIs;

const std::optional<StepExit> kRuns = std::nullopt;
const std::optional<StepExit> kEnded = StepExit{0, "finished"};

class RunRecorderTest : public ::testing::Test {
 protected:
  RunRecorderTest() : directory_(*RunDirectory::ForRun(run_.worker.data_directory(), run_.key)) {
    Prepare();
  }
  void Prepare() { CHECK_OK(PrepareRun(directory_, run_.spec, run_.worker, "{}")); }
  void Open() {
    recorder_.reset();
    absl::StatusOr<std::unique_ptr<RunRecorder>> recorder =
        RunRecorder::Open(directory_, run_.key, &clock_);
    ASSERT_THAT(recorder, IsOk());
    recorder_ = *std::move(recorder);
  }
  void Log(const std::string& bytes) { AppendTo(directory_.ResultPath(3), bytes); }
  static void AppendTo(const std::string& path, const std::string& bytes) {
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    CHECK_OK(WriteAll(fd.get(), bytes));
  }
  void Sync() {
    clock_.Advance(RunRecorder::kSyncDelay);
    ASSERT_THAT(recorder_->SyncIfDue(), IsOk());
  }
  // Durable events in short: "1 line text", "2 touch", "3 finding RULE".
  std::vector<std::string> Events() {
    std::vector<std::string> names;
    const absl::StatusOr<std::vector<v1::RunEvent>> events = recorder_->spool()->Read(1, {});
    EXPECT_THAT(events, IsOk());
    for (const v1::RunEvent& event : *events)
      names.push_back(Name(event));
    return names;
  }
  static std::string Name(const v1::RunEvent& event) {
    switch (event.kind()) {
      case v1::RunEvent::LOG_LINE:
        return absl::StrCat(event.seq(), " line ", event.line(), " ", event.text());
      case v1::RunEvent::FIRST_TOUCH:
        return absl::StrCat(event.seq(), " touch");
      case v1::RunEvent::FINDING:
        return absl::StrCat(event.seq(), " finding ", event.finding().rule(), " line ",
                            event.line());
      case v1::RunEvent::PROGRESS:
        return absl::StrCat(event.seq(), " progress ", event.text());
      default:
        return "?";
    }
  }
  static std::string Record(const std::string& type, const std::string& key,
                            const std::string& value, int64_t time_ms = 1704067200000) {
    return absl::StrCat(":::MLLOG {\"namespace\": \"\", \"time_ms\": ", time_ms,
                        ", \"event_type\": \"", type, "\", \"key\": \"", key,
                        "\", \"value\": ", value,
                        ", \"metadata\": {\"file\": \"t\", \"lineno\": 1}}\n");
  }

  RunFixture run_;
  const RunDirectory directory_;
  FakeClock clock_;
  std::unique_ptr<RunRecorder> recorder_;
};

TEST_F(RunRecorderTest, LinesBecomeEventsStampedOnSight) {
  Open();
  Log("hello\nhalf");
  clock_.Advance(absl::Seconds(5));
  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  Sync();

  EXPECT_THAT(Events(), ElementsAre("1 line 1 hello"));
  const absl::StatusOr<std::vector<v1::RunEvent>> events = recorder_->spool()->Read(1, {});
  EXPECT_EQ((*events)[0].mono_ns(), 5'000'000'000);
  EXPECT_EQ((*events)[0].wall_us(), 1704067205000000);
}

TEST_F(RunRecorderTest, SyncsAfterADelayOrEnoughEventsOrAtTheEnd) {
  Open();
  Log("one\n");
  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  ASSERT_THAT(recorder_->SyncIfDue(), IsOk());
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_EQ(recorder_->sync_due(), clock_.Mono() + RunRecorder::kSyncDelay);
  Sync();
  EXPECT_EQ(Events().size(), 1U);

  std::string many;
  for (int i = 0; i < RunRecorder::kSyncEvents; ++i)
    many += "x\n";
  Log(many);
  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  ASSERT_THAT(recorder_->SyncIfDue(), IsOk());
  EXPECT_EQ(Events().size(), 1U + RunRecorder::kSyncEvents);

  Log("last");
  ASSERT_THAT(recorder_->Observe(kEnded), IsOk());
  ASSERT_THAT(recorder_->SyncIfDue(), IsOk());
  EXPECT_THAT(Events().back(), HasSubstr(" last"));
}

TEST_F(RunRecorderTest, IsCompleteOnlyWhenTheEndIsDurable) {
  Open();
  Log("one\n");
  ASSERT_THAT(recorder_->Observe(kEnded), IsOk());
  EXPECT_FALSE(recorder_->Observation(true, kEnded).is_spool_complete);
  ASSERT_THAT(recorder_->SyncIfDue(), IsOk());
  const RunObserved seen = recorder_->Observation(true, kEnded);
  EXPECT_TRUE(seen.is_spool_complete);
  EXPECT_EQ(seen.spooled_seq, 1);
  EXPECT_THAT(seen.artifacts, ElementsAre("result_3.txt", "system_0.json"));
}

TEST_F(RunRecorderTest, TheRecordHoldsWhatTheNodeHasPassed) {
  v1::Preflight* const preflight = run_.spec.mutable_preflight();
  preflight->set_submission("submissions/e-1");
  preflight->set_state(v1::Preflight::PASSED);
  preflight->mutable_end_time()->set_seconds(1'700'000'000);
  v1::NodeCheck* const check = preflight->add_checks();
  check->set_check("memory");
  check->set_policy(v1::NodeCheck::GATE);
  check->set_is_measured(true);
  check->set_value(12.5);
  check->set_unit("GB/s");
  check->set_median(12);
  preflight->add_checks()->set_check("gpu");
  Prepare();
  Open();
  Log("one\n");
  ASSERT_THAT(recorder_->Observe(kEnded), IsOk());
  ASSERT_THAT(recorder_->SyncIfDue(), IsOk());
  EXPECT_THAT(recorder_->Observation(true, kEnded).artifacts,
              ElementsAre("result_3.txt", "system_0.json", "preflight_0.json"));
  const auto record = nlohmann::json::parse(ReadFile(directory_.PreflightPath()).value_or(""));
  EXPECT_EQ(record["node"], run_.worker.name());
  EXPECT_EQ(record["submission"], "submissions/e-1");
  EXPECT_EQ(record["state"], "PASSED");
  EXPECT_EQ(record["end_time"], "2023-11-14T22:13:20.000Z");
  const auto memory = record["checks"][0];
  EXPECT_EQ(memory["value"], 12.5);
  EXPECT_EQ(memory["unit"], "GB/s");
  EXPECT_EQ(memory["median"], 12);
  EXPECT_EQ(memory["policy"], "GATE");
  EXPECT_FALSE(record["checks"][1].contains("value")) << "nothing was measured";
}

TEST_F(RunRecorderTest, ProgressAndTouchAreInTheSameSequence) {
  Open();
  Log("one\n");
  AppendTo(directory_.ProgressPath(), "{\"epoch\": 1}\n");
  ASSERT_THAT(
      directory_.WriteTouch(
          {.path = "/d/a", .mechanism = "fanotify", .is_attributed = true, .stamp = {77, 88}}),
      IsOk());
  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  Sync();
  EXPECT_THAT(Events(), ElementsAre("1 touch", "2 line 1 one", "3 progress {\"epoch\": 1}"));
  const absl::StatusOr<std::vector<v1::RunEvent>> events = recorder_->spool()->Read(1, {});
  EXPECT_EQ((*events)[0].wall_us(), 77);
  EXPECT_EQ((*events)[0].mono_ns(), 88);
}

// The last record is the profile of the whole run; it counts even if much came at once.
TEST_F(RunRecorderTest, NothingOfALongProgressFileIsLeftOutAtTheEnd) {
  Open();
  constexpr int kRecords = 40'000;
  std::string records;
  for (int i = 0; i < kRecords; ++i)
    absl::StrAppend(&records, R"({"phase": "training", "done": )", i, "}\n");
  ASSERT_GT(records.size(), size_t{1} << 20);
  AppendTo(directory_.ProgressPath(), records + R"({"profile": {"is_final": true}})");

  ASSERT_THAT(recorder_->Observe(kEnded), IsOk());
  ASSERT_THAT(recorder_->SyncIfDue(), IsOk());

  const absl::StatusOr<std::vector<v1::RunEvent>> last = recorder_->spool()->Read(kRecords + 1, {});
  ASSERT_THAT(last, IsOk());
  ASSERT_EQ(last->size(), 1U);
  EXPECT_EQ(last->front().text(), R"({"profile": {"is_final": true}})");
}

TEST_F(RunRecorderTest, ALineThatBreaksARuleBringsItsFinding) {
  Open();
  Log(Record("POINT_IN_TIME", "submission_division", "\"neither\""));
  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  Sync();
  EXPECT_THAT(Events(), Contains(HasSubstr("finding R-")));
}

TEST_F(RunRecorderTest, AReadBeforeTheClockStartedIsAFinding) {
  Open();
  const int64_t touch_ms = absl::ToUnixMillis(clock_.Wall());
  ASSERT_THAT(directory_.WriteTouch({.path = "/d/train/a",
                                     .mechanism = "fanotify",
                                     .is_attributed = true,
                                     .stamp = {touch_ms * 1000, 1}}),
              IsOk());
  Log(Record("INTERVAL_START", "run_start", "null", touch_ms + 5000));
  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  Sync();
  EXPECT_THAT(Events(), Contains(HasSubstr("finding R-TIM-001")));
}

TEST_F(RunRecorderTest, AnObservedTouchWarnsAndTheRunsOwnIsJudgedBesideIt) {
  Open();
  const int64_t touch_ms = absl::ToUnixMillis(clock_.Wall());
  ASSERT_THAT(directory_.WriteTouch(
                  {.path = "/d/train/a", .mechanism = "fanotify", .stamp = {touch_ms * 1000, 1}}),
              IsOk());
  ASSERT_THAT(directory_.WriteTouch({.path = "/d/train/a",
                                     .mechanism = "fanotify",
                                     .is_attributed = true,
                                     .stamp = {(touch_ms + 6000) * 1000, 2}}),
              IsOk());
  Log(Record("INTERVAL_START", "run_start", "null", touch_ms + 5000));

  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  Sync();

  EXPECT_THAT(Events(), Contains(HasSubstr("finding R-TIM-006")));
  EXPECT_THAT(Events(), Not(Contains(HasSubstr("finding R-TIM-001"))));
  EXPECT_THAT(recorder_->Observation(true, kRuns).artifacts, IsEmpty());
}

TEST_F(RunRecorderTest, APauseOfARankIsAWarningOnceItsEndIsKnown) {
  Open();
  const Pause ended{.rank = 1, .begin = {5'000'000, 1'000'000}, .end = Stamp{0, 2'501'000'000}};
  ASSERT_THAT(directory_.WritePauses({ended, {.rank = 2, .begin = {6'000'000, 1}}}), IsOk());

  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  Sync();
  ASSERT_THAT(Events(), SizeIs(1));
  ASSERT_THAT(recorder_->Observe(kEnded), IsOk());
  ASSERT_THAT(recorder_->SyncIfDue(), IsOk());

  const absl::StatusOr<std::vector<v1::RunEvent>> events = recorder_->spool()->Read(1, {});
  ASSERT_THAT(events, IsOk());
  ASSERT_THAT(*events, SizeIs(2));
  EXPECT_EQ((*events)[0].finding().rule(), "R-PAU-001");
  EXPECT_EQ((*events)[0].finding().severity(), v1::Finding::WARNING);
  EXPECT_EQ((*events)[0].finding().found(), "rank 1 stopped at 5000 ms for 2500 ms");
  EXPECT_EQ((*events)[1].finding().found(), "rank 2 stopped at 6000 ms and not continued");
}

TEST_F(RunRecorderTest, WhatWasDoneToTheNodesClocksIsAWarning) {
  Open();
  ASSERT_THAT(directory_.WriteFaults(directory_.ClocksPath(),
                                     {{"R-CLK-002", "the monotonic clock ran at 0.9000"}}),
              IsOk());

  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  Sync();

  const absl::StatusOr<std::vector<v1::RunEvent>> events = recorder_->spool()->Read(1, {});
  ASSERT_THAT(events, IsOk());
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ((*events)[0].finding().rule(), "R-CLK-002");
  EXPECT_EQ((*events)[0].finding().severity(), v1::Finding::WARNING);
  EXPECT_EQ((*events)[0].finding().found(), "node 0: the monotonic clock ran at 0.9000");
}

TEST_F(RunRecorderTest, DataInMemoryIsAWarning) {
  Open();
  ASSERT_THAT(
      directory_.WriteFaults(directory_.MemoryPath(), {{"R-TIM-005", "9 pages"}, {"R-X", ""}}),
      IsOk());

  ASSERT_THAT(recorder_->Observe(kRuns), IsOk());
  Sync();

  const absl::StatusOr<std::vector<v1::RunEvent>> events = recorder_->spool()->Read(1, {});
  ASSERT_THAT(events, IsOk());
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ((*events)[0].finding().rule(), "R-TIM-005");
  EXPECT_EQ((*events)[0].finding().severity(), v1::Finding::WARNING);
  EXPECT_EQ((*events)[0].finding().found(), "node 0: 9 pages");
}

TEST_F(RunRecorderTest, RanksThatDivergedOrWereAttackedAreFindings) {
  Open();
  ASSERT_THAT(
      recorder_->Observe(StepExit{static_cast<int>(ExitCode::kDiverged), "rank 1: differs"}),
      IsOk());
  ASSERT_THAT(recorder_->SyncIfDue(), IsOk());
  const absl::StatusOr<std::vector<v1::RunEvent>> events = recorder_->spool()->Read(1, {});
  ASSERT_THAT(events, IsOk());
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ((*events)[0].finding().rule(), "R-PAR-001");
  EXPECT_EQ((*events)[0].finding().severity(), v1::Finding::ERROR);
  EXPECT_EQ((*events)[0].finding().found(), "rank 1: differs");

  EXPECT_EQ(rules::RankFailure(static_cast<int>(ExitCode::kIntruder), "x")->rule_id, "R-NET-001");
  EXPECT_EQ(rules::RankFailure(static_cast<int>(ExitCode::kCommLost), "x"), std::nullopt);
}

TEST_F(RunRecorderTest, OtherNodesRecordTheirTouchOnly) {
  run_.spec.set_node_count(2);
  run_.spec.set_node_rank(1);
  Prepare();
  Open();
  Log("not ours\n");
  ASSERT_THAT(directory_.WriteTouch({.path = "/d/a", .mechanism = "inotify"}), IsOk());
  ASSERT_THAT(recorder_->Observe(kEnded), IsOk());
  ASSERT_THAT(recorder_->SyncIfDue(), IsOk());
  EXPECT_THAT(Events(), ElementsAre("1 touch"));
  EXPECT_THAT(recorder_->Observation(true, kEnded).artifacts,
              ElementsAre("observed_1.json", "system_1.json"));
}

// Goal: a crash of the agent between any two moments changes nothing. How: the same log grows in
// the same steps, with a new recorder (and so a lost memory) after every step, synced or not; the
// events are those of the recorder that never crashed.
TEST_F(RunRecorderTest, CrashesLeaveNoGapAndNoRepeat) {
  std::vector<std::string> pieces;
  for (int i = 0; i < 40; ++i) {
    pieces.push_back(i % 7 == 3 ? Record("POINT_IN_TIME", "submission_division", "\"bad\"")
                                : absl::StrCat("line ", i, i % 3 == 0 ? "" : "\n"));
  }
  const auto play = [&](bool crashes) {
    CHECK_OK(RemoveTree(directory_.path()));
    Prepare();
    Open();
    for (size_t i = 0; i < pieces.size(); ++i) {
      Log(pieces[i]);
      if (i == 10)
        CHECK_OK(directory_.WriteTouch(
            {.path = "/d/a", .mechanism = "fanotify", .is_attributed = true}));
      EXPECT_THAT(recorder_->Observe(kRuns), IsOk());
      if (i % 2 == 0) Sync();
      if (crashes) Open();
    }
    EXPECT_THAT(recorder_->Observe(kEnded), IsOk());
    EXPECT_THAT(recorder_->SyncIfDue(), IsOk());
    return Events();
  };
  const std::vector<std::string> control = play(false);
  const std::vector<std::string> crashed = play(true);

  EXPECT_GT(control.size(), 30U);
  EXPECT_THAT(crashed, ::testing::ElementsAreArray(control));
}

TEST_F(RunRecorderTest, AfterTheEndANewRecorderIsCompleteAtOnce) {
  Open();
  Log("one\ntwo");
  ASSERT_THAT(recorder_->Observe(kEnded), IsOk());
  ASSERT_THAT(recorder_->SyncIfDue(), IsOk());
  const std::vector<std::string> before = Events();
  Open();
  ASSERT_THAT(recorder_->Observe(kEnded), IsOk());
  EXPECT_TRUE(recorder_->Observation(true, kEnded).is_spool_complete);
  EXPECT_THAT(Events(), ::testing::ElementsAreArray(before));
}

}  // namespace
}  // namespace assay::agent
