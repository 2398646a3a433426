// What the core makes of its workers: silence, return, farewell, draining.

#include <cstdint>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/core.h"
#include "server/core/node_figures.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::Creation;
using core::testing::kInvalid;
using core::testing::kSecond;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CoreWorkersTest, SuspectsThenGivesUpASilentWorker) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.replacement_count_max = 1;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit(spec);
  world.Executing("w0", RunId{1});

  EXPECT_EQ(world.core().NextWakeupUs(), world.now_us() + 10 * kSecond);
  world.Wait(10 * kSecond);
  EXPECT_EQ(world.worker("w0").state, WorkerState::kSuspect);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kRunning) << "a timed run is not disturbed";
  world.Wait(15 * 60 * kSecond);

  EXPECT_EQ(world.worker("w0").state, WorkerState::kLost);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_EQ(world.run(RunId{1}).state_reason,
            "unknown: worker w0 was silent for longer than 900 s");
  EXPECT_EQ(world.submission(id).runs.size(), 2u);
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued) << "not repeated on a lost worker";

  // It comes back, still executing: it has to stop, and its end is kept as evidence.
  EXPECT_EQ(world.Executing("w0", RunId{1}).action, DesiredAction::kStop);
  EXPECT_EQ(world.worker("w0").state, WorkerState::kAlive);
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued) << "w0 is not idle yet";
  EXPECT_EQ(world.Finished("w0", RunId{1}, 0).action, DesiredAction::kForget);
  EXPECT_EQ(world.run(RunId{1}).nodes[0].phase, NodePhase::kFinished);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed) << "the decision stands";
  EXPECT_EQ(world.Sync("w0")->run, RunId{2});
}

TEST(CoreWorkersTest, ComesBackFromSilenceWithoutHarm) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  world.Executing("w0", RunId{1});
  world.Wait(14 * 60 * kSecond);

  EXPECT_EQ(world.Executing("w0", RunId{1}).action, DesiredAction::kExecute);

  EXPECT_EQ(world.worker("w0").state, WorkerState::kAlive);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kRunning);
}

TEST(CoreWorkersTest, CountsItsOwnAbsenceAsNobodysSilence) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  world.Executing("w0", RunId{1});
  const int64_t later_us = world.now_us() + 3600 * kSecond;

  Core restarted({}, world.state(), later_us);
  restarted.Handle({}, later_us + 5 * kSecond);

  EXPECT_EQ(restarted.state().workers.at("w0").state, WorkerState::kAlive);
  EXPECT_EQ(restarted.state().runs.at(RunId{1}).state, RunState::kRunning);
}

TEST(CoreWorkersTest, GivesNoRunToAWorkerThatItHasNotHeardSinceItsStart) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  Core restarted({}, world.state(), world.now_us());

  std::vector<Command> commands;
  commands.push_back({"alice", Creation(SomeSpec(), "z")});
  restarted.Handle(std::move(commands), world.now_us());

  EXPECT_EQ(restarted.state().runs.at(RunId{1}).state, RunState::kQueued);
}

TEST(CoreWorkersTest, FailsARunThatANewAgentKnowsNothingOf) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.replacement_count_max = 1;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit(spec);
  world.Executing("w0", RunId{1});

  ASSERT_THAT(world.Sync("w0"), IsOk()) << "an old message of the same agent comes late";
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kRunning);
  world.incarnations["w0"] = "i2";
  const Desired desired = *world.Sync("w0");

  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_THAT(world.run(RunId{1}).state_reason, HasSubstr("knows nothing"));
  EXPECT_EQ(desired.run, RunId{2});
  world.incarnations["w0"] = "i1";
  EXPECT_THAT(world.Sync("w0"), StatusIs(absl::StatusCode::kAborted, HasSubstr("i1")));
}

TEST(CoreWorkersTest, LetsAnAgentSignOffBeforeItStarts) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.replacement_count_max = 1;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit(spec);
  ASSERT_EQ(world.run(RunId{1}).state, RunState::kAssigned);

  world.is_leaving = true;
  ASSERT_THAT(world.Sync("w0"), IsOk());

  EXPECT_EQ(world.worker("w0").state, WorkerState::kGone);
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued);
  ASSERT_THAT(world.Sync("w0"), IsOk());
  EXPECT_THAT(world.outcome().events, IsEmpty()) << "a second farewell is nothing new";
  world.is_leaving = false;
  EXPECT_EQ(world.Sync("w0")->run, RunId{2});
}

TEST(CoreWorkersTest, RefusesStrangeWorkers) {
  World world;

  EXPECT_THAT(world.Sync("W 0"), StatusIs(kInvalid));
  world.incarnations["w0"] = "";
  EXPECT_THAT(world.Sync("w0"), StatusIs(kInvalid));
  EXPECT_EQ(world.core().DesiredFor("nobody"), Desired{});
}

TEST(CoreWorkersTest, StopsWhatNobodyAskedFor) {
  World world;

  EXPECT_EQ(world.Executing("w0", RunId{77}).action, DesiredAction::kStop);
  EXPECT_EQ(world.Finished("w0", RunId{77}).action, DesiredAction::kForget);
  EXPECT_EQ(world.Sync("w0")->action, DesiredAction::kIdle);
}

TEST(CoreWorkersTest, DrainsAndResumes) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  world.Submit();
  world.Executing("w0", RunId{1});

  ASSERT_THAT(world.Do(DrainWorker{"w0", "new disk"}, "root"), IsOk());
  ASSERT_THAT(world.Do(DrainWorker{"w0", "again"}, "root"), IsOk());
  EXPECT_EQ(world.worker("w0").state, WorkerState::kDraining);
  EXPECT_EQ(world.worker("w0").state_reason, "new disk");
  world.Succeed(RunId{1});
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued);
  ASSERT_THAT(world.Do(ResumeWorker{"w0"}, "root"), IsOk());

  EXPECT_EQ(world.run(RunId{2}).state, RunState::kAssigned);
  EXPECT_THAT(world.Do(ResumeWorker{"w0"}), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(world.Do(ResumeWorker{"w9"}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(world.Do(DrainWorker{"w9", ""}), StatusIs(absl::StatusCode::kNotFound));
}

TEST(CoreWorkersTest, RemembersADrainThroughSilence) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Wait(20 * 60 * kSecond);
  ASSERT_EQ(world.worker("w0").state, WorkerState::kLost);

  ASSERT_THAT(world.Do(DrainWorker{"w0", "gone"}), IsOk());
  EXPECT_EQ(world.worker("w0").state, WorkerState::kLost);
  ASSERT_THAT(world.Sync("w0"), IsOk());

  EXPECT_EQ(world.worker("w0").state, WorkerState::kDraining);
  world.Wait(20 * 60 * kSecond);
  EXPECT_EQ(world.worker("w0").state, WorkerState::kLost);
  ASSERT_THAT(world.Do(ResumeWorker{"w0"}), IsOk());
  EXPECT_FALSE(world.worker("w0").is_drain_requested);
}

// One that executes run 1 says what it does.
Synchronize CallWith(const World& world, std::optional<NodeFigures> figures) {
  Synchronize call{.worker = "w0",
                   .report = {.phase = WorkerPhase::kExecuting, .run = RunId{1}, .generation = 1}};
  call.description = world.worker("w0").description;
  call.figures = figures;
  return call;
}

TEST(CoreFiguresTest, AreToldAsOldAsTheyAreAndGoWithTheirRun) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  ASSERT_THAT(world.Sync("w1"), IsOk());
  world.Submit();
  world.Executing("w0", RunId{1});
  const auto list = [&world](bool is_brief) {
    return std::get<WorkersReply>(
               *world.Do(ListWorkers{.is_brief = is_brief, .viewer = {.sees_all = true}}))
        .workers;
  };
  const int64_t events = world.state().last_seq;
  ASSERT_THAT(world.Do(CallWith(world, NodeFigures{.age_ms = 700, .run_cpu_share = 0.5}), "w0"),
              IsOk());
  world.Wait(3 * kSecond);

  for (const bool is_brief : {false, true}) {
    const std::vector<WorkersReply::Entry> workers = list(is_brief);
    ASSERT_EQ(workers.size(), 2U);
    ASSERT_TRUE(workers[0].presence.figures.has_value());
    EXPECT_EQ(*workers[0].presence.figures, (NodeFigures{.age_ms = 3700, .run_cpu_share = 0.5}));
    EXPECT_FALSE(workers[1].presence.figures.has_value());
    EXPECT_EQ(workers[0].worker.run, RunId{1});
    EXPECT_EQ(workers[0].worker.description.capabilities.backends.empty(), is_brief);
  }
  EXPECT_EQ(world.state().last_seq, events) << "nothing of it is kept";

  ASSERT_THAT(world.Do(CallWith(world, std::nullopt), "w0"), IsOk());
  EXPECT_FALSE(list(false)[0].presence.figures.has_value()) << "it says nothing any more";
}

TEST(CoreFiguresTest, WhoDoesNotSeeTheRunSeesAnIdleNode) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const auto list = [&world](const VisibleTo& viewer) {
    return std::get<WorkersReply>(*world.Do(ListWorkers{.viewer = viewer})).workers.at(0);
  };
  const VisibleTo rival = {.organization = "rival", .sees_published = true, .now_us = 1LL << 60};
  const WorkersReply::Entry idle = list(rival);
  world.Submit();
  world.Executing("w0", RunId{1});
  ASSERT_THAT(world.Do(CallWith(world, NodeFigures{.age_ms = 700}), "w0"), IsOk());

  for (const VisibleTo& viewer : {rival, VisibleTo{}}) {
    const WorkersReply::Entry seen = list(viewer);
    EXPECT_EQ(seen.worker, idle.worker);
    EXPECT_FALSE(seen.presence.figures.has_value());
  }
  const WorkersReply::Entry own = list({.organization = SomeSpec().organization});
  EXPECT_EQ(own.worker.run, RunId{1});
  EXPECT_GT(own.worker.generation, idle.worker.generation);
  EXPECT_TRUE(own.presence.figures.has_value());
}

TEST(CoreFiguresTest, AnAgeThatNobodyMeasuredOverflowsNothing) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  world.Executing("w0", RunId{1});
  for (const int64_t age_ms :
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    ASSERT_THAT(world.Do(CallWith(world, NodeFigures{.age_ms = age_ms}), "w0"), IsOk());
    world.Wait(kSecond);
    const auto reply = std::get<WorkersReply>(*world.Do(ListWorkers{.viewer = {.sees_all = true}}));
    EXPECT_EQ(reply.workers[0].presence.figures->age_ms, age_ms > 0 ? kFiguresAgeMaxMs : 1000);
  }
}

}  // namespace
}  // namespace assay::core
