// What is counted of the core's work, by a core that works.

#include "server/metrics/loop_figures.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/core/world.h"
#include "tests/server/metrics/series.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace assay::metrics {
namespace {

using ::assay::testing::FakeClock;
using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using ::assay::testing::TextOf;
using ::assay::testing::ValueOf;
using core::testing::World;
using ::testing::HasSubstr;
using ::testing::Not;

class LoopFiguresTest : public ::testing::Test {
 protected:
  LoopFiguresTest()
      : world_([this](const core::Outcome& outcome, const core::State& state) {
          if (outcome.events.empty()) return;
          figures_.Committed({outcome, state, 3, absl::Milliseconds(7)});
        }) {}

  // Value of a series after a turn that ends a second later; -1 if it is not there.
  double Value(absl::string_view series) {
    clock_.Advance(absl::Seconds(1));
    figures_.TurnEnded(world_.core());
    std::vector<prometheus::MetricFamily> families = figures_.Collect();
    for (prometheus::MetricFamily& family : registry_.Collect())
      families.push_back(std::move(family));
    text_ = TextOf(families);
    return ValueOf(text_, series).value_or(-1);
  }

  // A run of one node on w0 is executed.
  void ExecuteRun() {
    ASSERT_THAT(world_.Sync("w0"), IsOk());
    world_.Submit();
    world_.Executing("w0", core::RunId{1});
  }

  void JudgeWith(std::vector<core::Finding> findings) {
    ExecuteRun();
    world_.Finished("w0", core::RunId{1});
    core::LogChecked checked{.run = core::RunId{1}};
    checked.facts.findings = std::move(findings);
    ASSERT_THAT(world_.Do(checked, "coordinator"), IsOk());
  }

  FakeClock clock_;
  prometheus::Registry registry_;
  LoopFigures figures_{&clock_, &registry_};
  World world_;
  std::string text_;
};

TEST_F(LoopFiguresTest, ARunIsSeenInEachOfItsStates) {
  world_.Submit();
  EXPECT_EQ(Value("assay_runs{state=\"queued\"}"), 1);
  EXPECT_EQ(Value("assay_runs_queued_total"), 1);
  EXPECT_EQ(Value("assay_submissions_created_total"), 1);
  EXPECT_EQ(Value("assay_submissions{state=\"open\"}"), 1);
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  world_.Executing("w0", core::RunId{1});
  EXPECT_EQ(Value("assay_runs{state=\"queued\"}"), 0);
  EXPECT_EQ(Value("assay_runs{state=\"running\"}"), 1);
  EXPECT_EQ(Value("assay_worker_executing{worker=\"w0\"}"), 1);
  world_.Succeed(core::RunId{1});
  EXPECT_EQ(Value("assay_runs{state=\"running\"}"), 0);
  EXPECT_EQ(Value("assay_runs_ended_total{state=\"succeeded\"}"), 1);
  EXPECT_EQ(Value("assay_runs_ended_total{state=\"failed\"}"), 0);
  EXPECT_EQ(Value("assay_worker_executing{worker=\"w0\"}"), 0);
}

TEST_F(LoopFiguresTest, ACancelledEntryAndItsRunHaveEnded) {
  const core::SubmissionId id = world_.Submit();
  ASSERT_THAT(world_.Do(core::CancelSubmission{.submission = id}), IsOk());

  EXPECT_EQ(Value("assay_runs_ended_total{state=\"cancelled\"}"), 1);
  EXPECT_EQ(Value("assay_submissions_ended_total{state=\"cancelled\"}"), 1);
  EXPECT_EQ(Value("assay_submissions{state=\"open\"}"), 0);
}

TEST_F(LoopFiguresTest, AWorkerThatIsSilentIsNamed) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  EXPECT_EQ(Value("assay_worker_silent{worker=\"w0\"}"), 0);
  EXPECT_EQ(Value("assay_workers{state=\"alive\"}"), 1);
  world_.Wait(20 * core::testing::kSecond);

  EXPECT_EQ(Value("assay_worker_silent{worker=\"w0\"}"), 1);
  EXPECT_EQ(Value("assay_workers{state=\"alive\"}"), 0);
  EXPECT_EQ(Value("assay_workers{state=\"suspect\"}"), 1);
}

TEST_F(LoopFiguresTest, CommitsAreMeasured) {
  world_.Submit();
  const double count = Value("assay_commit_duration_seconds_count");
  EXPECT_GE(count, 2);  // with that of the dataset
  EXPECT_DOUBLE_EQ(Value("assay_commit_duration_seconds_sum"), count * 0.007);
  EXPECT_EQ(Value("assay_commit_duration_seconds_bucket{le=\"0.005\"}"), 0);
  EXPECT_EQ(Value("assay_commit_duration_seconds_bucket{le=\"0.01\"}"), count);
  EXPECT_EQ(Value("assay_commit_batch_commands_sum"), count * 3);
  EXPECT_GE(Value("assay_events_committed_total"), 2);
}

// The node's clock is 5 s ahead: what it stamps 2 s ahead of the coordinator's is 3 s old.
TEST_F(LoopFiguresTest, TheLagOfEventsIsByTheCorrectedClock) {
  world_.clocks["w0"] = {.offset_us = 5 * core::testing::kSecond, .uncertainty_us = 10};
  ExecuteRun();
  core::AppendRunEvents append{.run = core::RunId{1}, .generation = 1, .worker = "w0"};
  append.events.push_back(
      {.seq = 1, .text = "line", .wall_us = world_.now_us() + 2 * core::testing::kSecond});
  ASSERT_THAT(world_.Do(append, "w0"), IsOk());

  EXPECT_DOUBLE_EQ(Value("assay_worker_event_lag_seconds{worker=\"w0\"}"), 3);
  EXPECT_DOUBLE_EQ(Value("assay_event_lag_seconds_sum"), 3);
  EXPECT_EQ(Value("assay_run_events_committed_total"), 1);
  EXPECT_DOUBLE_EQ(Value("assay_worker_clock_offset_seconds{worker=\"w0\"}"), 5);
  world_.Succeed(core::RunId{1});
  EXPECT_EQ(Value("assay_worker_event_lag_seconds{worker=\"w0\"}"), -1) << text_;
}

TEST_F(LoopFiguresTest, FindingsAreCountedByRuleAndSeverity) {
  JudgeWith({{.rule_id = "R-HP-004", .severity = core::Severity::kError},
             {.rule_id = "R-HP-004", .severity = core::Severity::kError},
             {.rule_id = "R-PAU-001", .severity = core::Severity::kWarning}});

  EXPECT_EQ(Value("assay_rule_findings_total{rule=\"R-HP-004\",severity=\"error\"}"), 2) << text_;
  EXPECT_EQ(Value("assay_rule_findings_total{rule=\"R-PAU-001\",severity=\"warning\"}"), 1);
}

// Nodes and facilities name rules, too: they must neither fill Prometheus nor break a scrape.
TEST_F(LoopFiguresTest, NoFloodOfRulesAndNoBrokenTextReachesAScrape) {
  std::vector<core::Finding> findings;
  for (size_t i = 0; i < LoopFigures::kRulesMax + 100; ++i)
    findings.push_back({.rule_id = absl::StrCat("R-PAU-", i)});
  findings.push_back({.rule_id = "R-\xff\"\n"});
  findings.push_back({.rule_id = std::string(1000, 'R')});
  findings.push_back({.rule_id = ""});
  JudgeWith(std::move(findings));

  EXPECT_EQ(Value("assay_rule_findings_total{rule=\"other\",severity=\"error\"}"), 103);
  EXPECT_EQ(Value("assay_rule_findings_total{rule=\"R-PAU-0\",severity=\"error\"}"), 1);
  EXPECT_THAT(text_, Not(HasSubstr("\xff")));
}

TEST_F(LoopFiguresTest, ReadyWhileItTurnsAndTheDiskTakesWhatItCommits) {
  LoopFigures silent(&clock_, &registry_);
  EXPECT_THAT(silent.Readiness(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("first turn")));
  EXPECT_EQ(Value("assay_ready"), 1);
  EXPECT_THAT(figures_.Readiness(), IsOk());

  clock_.Advance(LoopFigures::kSilenceMax);
  EXPECT_THAT(figures_.Readiness(), IsOk());
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(figures_.Readiness(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no turn")));
  figures_.TurnEnded(world_.core());
  EXPECT_THAT(figures_.Readiness(), IsOk());
}

TEST_F(LoopFiguresTest, NotReadyAfterACommitThatTheDiskRefused) {
  figures_.TurnEnded(world_.core());
  figures_.CommitRefused(absl::InvalidArgumentError("a row is too large"));
  EXPECT_THAT(figures_.Readiness(), IsOk()) << "which was one command's fault";
  figures_.CommitRefused(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(figures_.Readiness(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the disk is full")));
  EXPECT_EQ(Value("assay_ready"), 0);
  EXPECT_EQ(Value("assay_commits_refused_total"), 2);

  world_.Submit();  // commits
  EXPECT_EQ(Value("assay_ready"), 1);

  // Where nobody comes because it is not ready, there is no next commit.
  figures_.CommitRefused(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_EQ(Value("assay_ready"), 0);
  clock_.Advance(LoopFigures::kRefusalCounts);
  EXPECT_EQ(Value("assay_ready"), 1);
}

}  // namespace
}  // namespace assay::metrics
