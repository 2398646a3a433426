// Runs and submissions that fail: who is blamed, what is repeated.

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/core.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using core::testing::kInvalid;
using core::testing::kSecond;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CoreFailuresTest, ReplacesARunThatTheInfrastructureFailed) {
  World world;
  const SubmissionId id = world.SubmitGang(1);

  world.Finished("w1", RunId{1}, 137);

  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_EQ(world.run(RunId{1}).state_reason, "rank 1 on w1: killed by signal 9");
  EXPECT_EQ(world.submission(id).runs.size(), 1u) << "w0 still executes: the cause may be there";
  EXPECT_EQ(world.Executing("w0", RunId{1}).action, DesiredAction::kStop);
  world.Finished("w0", RunId{1}, 9);
  ASSERT_EQ(world.submission(id).runs.size(), 2u);
  EXPECT_EQ(world.run(RunId{2}).seed, 1002);
  EXPECT_EQ(world.run(RunId{2}).number, 2);
  ASSERT_THAT(world.Sync("w0"), IsOk());
  EXPECT_EQ(world.Sync("w1")->run, RunId{2});
  world.Succeed(RunId{2});
  EXPECT_EQ(world.submission(id).state, SubmissionState::kChecking);
}

// So that it computes to the same bits, in the same time; the first node hands them to rank 0.
TEST(CoreFailuresTest, AReplacementIsGivenTheEnginesOfTheNewestRunBeforeItThatLeftSome) {
  World world;
  world.SubmitGang(2);
  EXPECT_EQ(world.Executing("w0", RunId{1}).order->engines, std::nullopt);
  const ArtifactRef engines{std::string(kEnginesFileName), std::string(64, 'e'), 100};
  ASSERT_THAT(world.Do(RecordArtifact{RunId{1}, 1, engines, "w0"}, "w0"), IsOk());
  const auto fail = [&world](RunId run) {
    world.Finished("w1", run, 137);
    world.Finished("w0", run, 9);
  };

  // The second leaves none behind: it was lost before it had a model.
  for (const RunId run : {RunId{1}, RunId{2}}) {
    fail(run);
    ASSERT_THAT(world.Sync("w0"), IsOk());  // both are free
    const absl::StatusOr<Desired> second = world.Sync("w1"), first = world.Sync("w0");
    ASSERT_THAT(second, IsOk());
    ASSERT_THAT(first, IsOk());
    ASSERT_EQ(first->run, RunId{run.number + 1});
    EXPECT_EQ(first->order->engines, engines);
    EXPECT_EQ(second->order->engines, std::nullopt);
    for (const char* worker : {"w0", "w1"})
      world.Executing(worker, first->run);
  }
}

// A reboot, or the death of the process that supervises the trainers: nothing of the trainer's.
TEST(CoreFailuresTest, ReplacesARunThatItsNodeLost) {
  World world;
  const SubmissionId id = world.SubmitGang(1);

  world.Finished("w0", RunId{1}, 4);
  world.Finished("w1", RunId{1}, 10);

  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_EQ(world.run(RunId{1}).state_reason, "rank 1 on w1: the node lost the run");
  EXPECT_EQ(world.Closed(id), nullptr);
  EXPECT_EQ(world.submission(id).runs.size(), 2u) << "the failed run stays, another is queued";
}

TEST(CoreFailuresTest, ClosesTheSubmissionWhenReplacementsAreUsedUp) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit();
  world.Executing("w0", RunId{1});

  world.Finished("w0", RunId{1}, 4);

  ASSERT_NE(world.Closed(id), nullptr);
  EXPECT_EQ(world.Closed(id)->state, SubmissionState::kInvalid);
  EXPECT_THAT(world.Closed(id)->reason, HasSubstr("lost contact with another rank"));
}

TEST(CoreFailuresTest, BlamesTheTrainerThatFailedNotThePeerThatNoticed) {
  World world;
  const SubmissionId id = world.SubmitGang(5);

  world.Finished("w0", RunId{1}, 4);
  world.Finished("w1", RunId{1}, 7);

  ASSERT_NE(world.Closed(id), nullptr) << "a run that diverges is not repeated";
  EXPECT_THAT(world.Closed(id)->reason, HasSubstr("rank 1 on w1: loss or weights"));
}

// Of a gang whose rank 1 ends with `code` after rank 0 has noticed: the run's reason.
std::string ReasonAfterTheCulpritReports(int32_t code) {
  World world;
  world.SubmitGang();
  world.Finished("w0", RunId{1}, 4);
  EXPECT_THAT(world.run(RunId{1}).state_reason, HasSubstr("rank 0 on w0: lost contact"));
  world.Finished("w1", RunId{1}, code);
  return world.run(RunId{1}).state_reason;
}

TEST(CoreFailuresTest, NamesTheRankThatDiedNotTheOneThatReportedFirst) {
  EXPECT_THAT(ReasonAfterTheCulpritReports(137), HasSubstr("rank 1 on w1: killed by signal 9"));
  EXPECT_THAT(ReasonAfterTheCulpritReports(6), HasSubstr("rank 1 on w1: out of memory"));
  EXPECT_THAT(ReasonAfterTheCulpritReports(9), HasSubstr("rank 0 on w0: lost contact"));
}

TEST(CoreFailuresTest, NamesAllBetweenWhomContactWasLost) {
  EXPECT_EQ(ReasonAfterTheCulpritReports(9),
            "rank 0 on w0: lost contact with another rank (the others on w1)");
}

TEST(CoreFailuresTest, FailsARunWhoseLogCannotBeJudged) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.replacement_count_max = 5;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit(spec);
  world.Executing("w0", RunId{1});
  world.Finished("w0", RunId{1});

  ASSERT_THAT(world.Do(LogChecked{RunId{1}, {}, "no result_1.txt"}), IsOk());

  EXPECT_EQ(world.Closed(id)->reason, "run r-1 failed: no result_1.txt");
  EXPECT_THAT(world.Do(LogChecked{RunId{1}, {}, ""}), IsOk()) << "a verdict too late is ignored";
  EXPECT_THAT(world.outcome().events, IsEmpty());
}

TEST(CoreFailuresTest, FailsARunThatOutlivesItsTimeout) {
  World world;
  SubmissionSpec spec = SomeSpec();
  spec.run_timeout_ms = 60'000;
  spec.replacement_count_max = 5;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit(spec);
  world.Executing("w0", RunId{1});

  for (int i = 0; i < 60 * 6 + 1; ++i) {
    world.Wait(kSecond);
    world.Executing("w0", RunId{1});
  }

  EXPECT_EQ(world.run(RunId{1}).state_reason, "ran for longer than its run_timeout");
  world.Finished("w0", RunId{1}, 9);
  EXPECT_EQ(world.Closed(id)->state, SubmissionState::kInvalid);
}

TEST(CoreFailuresTest, EndsInvalidWithoutAScore) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit();
  world.Succeed(RunId{1}, /*is_converged=*/false);

  ASSERT_THAT(world.Do(SetScored{id, std::nullopt, {Finding{.rule_id = "R-1"}}, "no score"}),
              IsOk());

  EXPECT_EQ(world.Closed(id)->state, SubmissionState::kInvalid);
  EXPECT_EQ(world.Closed(id)->findings.size(), 1u);
  EXPECT_THAT(world.Do(SetScored{id, 1.0, {}, ""}), IsOk());
  EXPECT_THAT(world.outcome().events, IsEmpty());
}

}  // namespace
}  // namespace assay::core
