// Throughput sets: instances that are placed together and score together.

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/desired.h"
#include "server/core/schedule.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SubmissionSpec Instances(int count, int node_count) {
  SubmissionSpec spec = SomeSpec();
  spec.metric = std::string(kThroughput);
  spec.run_count = count;
  spec.node_count = node_count;
  return spec;
}

void Join(World* world, int first, int end) {
  for (int i = first; i < end; ++i)
    ASSERT_TRUE(world->Sync(absl::StrCat("w", i)).ok());
}

SubmissionId Submit(World* world, const SubmissionSpec& spec, int32_t required) {
  CreateSubmission command = core::testing::Creation(spec, "throughput");
  command.rules.required_run_count = required;
  return std::get<SubmissionReply>(*world->Do(std::move(command))).id;
}

TEST(ThroughputSetTest, AllInstancesArePlacedTogetherOrNone) {
  World world;
  Join(&world, 0, 5);
  const SubmissionId id = Submit(&world, Instances(3, 2), 1);

  EXPECT_TRUE(world.state().active.empty());
  const auto why = std::get<Explanation>(*world.Do(ExplainSubmission{id}));
  EXPECT_THAT(why.explanation, HasSubstr("needs 6 workers"));
  EXPECT_THAT(why.remedy, HasSubstr("add 1 workers"));

  Join(&world, 5, 6);
  ASSERT_EQ(world.state().active.size(), 3u);
  EXPECT_THAT(NodeNames(world.run(RunId{1})), ElementsAre("w0", "w1"));
  EXPECT_THAT(NodeNames(world.run(RunId{2})), ElementsAre("w2", "w3"));
  EXPECT_THAT(NodeNames(world.run(RunId{3})), ElementsAre("w4", "w5"));
  EXPECT_EQ(world.submission(id).scaling, "weak");
  EXPECT_EQ(world.Fold(), world.state());
}

TEST(ThroughputSetTest, ALimitOfRunsDoesNotStopItHalfWay) {
  World world({.organization_run_limit = 2});
  Join(&world, 0, 3);
  Submit(&world, Instances(3, 1), 1);
  EXPECT_EQ(world.state().active.size(), 3u);
}

TEST(ThroughputSetTest, AnInstanceThatFailsIsLeftOut) {
  World world;
  Join(&world, 0, 4);
  const SubmissionId id = Submit(&world, Instances(4, 1), 3);
  world.Executing("w1", RunId{2});
  world.Finished("w1", RunId{2}, 3);
  for (const int run : {1, 3, 4})
    world.Succeed(RunId{run});

  ASSERT_EQ(world.submission(id).state, SubmissionState::kChecking);
  ASSERT_EQ(world.submission(id).runs.size(), 4u) << "nothing is repeated";
  const Throughput scored{.model_count = 3, .instance_scale = 1, .time_to_all_minutes = 2};
  ASSERT_TRUE(world.Do(SetScored{.submission = id, .throughput = scored}, "coordinator").ok());
  const SubmissionClosed* closed = world.Closed(id);
  ASSERT_NE(closed, nullptr);
  EXPECT_EQ(closed->state, SubmissionState::kValid);
  EXPECT_EQ(closed->throughput, scored);
  EXPECT_EQ(closed->score_minutes, std::nullopt);
}

TEST(ThroughputSetTest, TooFewLeftEndTheSetAtOnce) {
  World world;
  Join(&world, 0, 4);
  const SubmissionId id = Submit(&world, Instances(4, 1), 4);
  world.Executing("w1", RunId{2});
  world.Finished("w1", RunId{2}, 3);

  const SubmissionClosed* closed = world.Closed(id);
  ASSERT_NE(closed, nullptr);
  EXPECT_EQ(closed->state, SubmissionState::kInvalid);
  EXPECT_THAT(closed->reason, HasSubstr("only 3 of at least 4 instances are left: run r-2 failed"));
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kCancelled);
}

WorkerReport Ready(RunId run, bool has_leave = false) {
  return {.phase = WorkerPhase::kExecuting,
          .run = run,
          .generation = 1,
          .is_ready = true,
          .has_leave_to_start = has_leave};
}

TEST(ThroughputSetTest, InstancesStartWhenAllAreReady) {
  World world;
  Join(&world, 0, 3);
  Submit(&world, Instances(3, 1), 1);
  EXPECT_FALSE(world.Sync("w0", Ready(RunId{1}))->may_start);
  EXPECT_FALSE(world.Executing("w1", RunId{2}).may_start);
  EXPECT_FALSE(world.Sync("w2", Ready(RunId{3}))->may_start);
  EXPECT_TRUE(world.Sync("w1", Ready(RunId{2}))->may_start);
  EXPECT_THAT(world.outcome().may_start, ElementsAre("w0", "w1", "w2")) << "all are to be told";

  const Desired told = *world.Sync("w0", Ready(RunId{1}));
  EXPECT_TRUE(told.may_start);
  EXPECT_FALSE(IsSatisfied(told, Ready(RunId{1}))) << "it must hear of it";
  EXPECT_TRUE(IsSatisfied(told, Ready(RunId{1}, /*has_leave=*/true)));
  ASSERT_THAT(world.Sync("w0", Ready(RunId{1}, /*has_leave=*/true)), IsOk());
  EXPECT_THAT(world.outcome().may_start, ElementsAre("w1", "w2"))
      << "until they say that they know";
}

TEST(ThroughputSetTest, GoodInstancesAreLeftOutOnceAndOnlyOnceItIsValid) {
  World world;
  Join(&world, 0, 4);
  const SubmissionId id = Submit(&world, Instances(4, 1), 3);
  const PruneInstances prune{
      .submission = id,
      .runs = {RunId{2}},
      .throughput = {.model_count = 3, .pruned_count = 1, .time_to_all_minutes = 1},
      .reason = "3 models per minute"};
  EXPECT_THAT(world.Do(prune), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("OPEN")));
  for (const int run : {1, 2, 3, 4})
    world.Succeed(RunId{run});
  const Throughput scored{.model_count = 4, .instance_scale = 1, .time_to_all_minutes = 2};
  ASSERT_TRUE(world.Do(SetScored{.submission = id, .throughput = scored}, "coordinator").ok());

  PruneInstances odd = prune;
  for (const std::vector<RunId>& runs : {std::vector<RunId>{}, {RunId{2}, RunId{2}}, {RunId{5}}}) {
    odd.runs = runs;
    EXPECT_THAT(world.Do(odd), StatusIs(core::testing::kInvalid));
  }
  ASSERT_THAT(world.Do(prune), IsOk());
  EXPECT_TRUE(std::get<SubmissionReply>(*world.Do(prune)).is_repeated);
  odd.runs = {RunId{3}};
  EXPECT_THAT(world.Do(odd), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("once")));
  ASSERT_THAT(world.Do(NoteSubmission{.submission = id, .text = "well"}), IsOk());
  const Submission& entry = *std::get<SubmissionReply>(*world.outcome().replies[0]).submission;
  EXPECT_EQ(entry.state, SubmissionState::kValid);
  EXPECT_THAT(entry.pruned_runs, ElementsAre(RunId{2}));
  EXPECT_EQ(entry.throughput, prune.throughput);
  EXPECT_EQ(entry.state_reason, "3 models per minute");
  EXPECT_EQ(world.Fold(), world.state());
}

TEST(ThroughputSetTest, NobodyWaitsForAnInstanceThatFailed) {
  World world;
  Join(&world, 0, 3);
  Submit(&world, Instances(3, 1), 1);
  EXPECT_FALSE(world.Sync("w0", Ready(RunId{1}))->may_start);
  EXPECT_FALSE(world.Sync("w2", Ready(RunId{3}))->may_start);
  world.Executing("w1", RunId{2});
  world.Finished("w1", RunId{2}, 5);
  EXPECT_TRUE(world.Sync("w0", Ready(RunId{1}))->may_start);
}

TEST(ThroughputSetTest, RunsOneAfterTheOtherWaitForNobody) {
  World world;
  Join(&world, 0, 1);
  world.Submit();
  const Desired desired = world.Executing("w0", RunId{1});
  EXPECT_FALSE(desired.may_start);
  EXPECT_TRUE(IsSatisfied(desired, {WorkerPhase::kExecuting, RunId{1}, 1, 0, "", {}}));
}

TEST(ThroughputSetTest, ReplacementsAreRefused) {
  World world;
  SubmissionSpec spec = Instances(4, 1);
  spec.replacement_count_max = 1;
  const auto reply = world.Do(core::testing::Creation(spec, "throughput"));
  EXPECT_EQ(reply.status().code(), core::testing::kInvalid);
  EXPECT_THAT(std::string(reply.status().message()),
              HasSubstr("replacement_count_max: expected 0"));
}

TEST(ThroughputSetTest, OneAllocationHoldsAllInstances) {
  World world;
  ASSERT_TRUE(world
                  .Do(LauncherStarted{.launcher = "batch",
                                      .allocation_count_max = 1,
                                      .node_count_min = 1,
                                      .node_count_max = 100},
                      "coordinator")
                  .ok());
  Submit(&world, Instances(4, 3), 1);
  ASSERT_EQ(world.state().allocations.size(), 1u);
  EXPECT_EQ(world.state().allocations.begin()->second.spec.node_count, 12);
}

}  // namespace
}  // namespace assay::core
