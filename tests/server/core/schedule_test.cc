#include "server/core/schedule.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/random.h"
#include "tests/server/core/world.h"

namespace assay::core {
namespace {

using core::testing::SomeSpec;
using core::testing::World;
using ::testing::ElementsAre;

void Join(World* world, int count) {
  for (int i = 0; i < count; ++i)
    ASSERT_TRUE(world->Sync(absl::StrCat("w", i)).ok());
}

SubmissionSpec Wanting(int node_count, const std::string& organization = "lab") {
  SubmissionSpec spec = SomeSpec();
  spec.node_count = node_count;
  spec.organization = organization;
  return spec;
}

TEST(ScheduleTest, NeverPlacesPartOfAGang) {
  World world;
  Join(&world, 3);

  world.Submit(Wanting(4));

  EXPECT_EQ(world.run(RunId{1}).state, RunState::kQueued);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(world.worker(absl::StrCat("w", i)).run.is_none());
}

TEST(ScheduleTest, NobodyOvertakesTheHeadOnAWorkerThatItWants) {
  World world;
  Join(&world, 3);
  world.Submit(Wanting(2));  // r-1 takes w0 and w1
  world.Submit(Wanting(3));  // r-2 waits for them and keeps w2

  world.Submit(Wanting(1));

  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued);
  EXPECT_EQ(world.run(RunId{3}).state, RunState::kQueued);
  world.Succeed(RunId{1});
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kAssigned);
}

TEST(ScheduleTest, BackfillsWhatTheHeadCannotUse) {
  World world;
  world.labels["w2"] = {{"rack", "b"}};
  Join(&world, 3);
  SubmissionSpec on_b = Wanting(1);
  on_b.worker_labels = {{"rack", "b"}};
  world.Submit(on_b);        // r-1 holds w2
  world.Submit(on_b);        // r-2 waits for w2 alone
  world.Submit(Wanting(2));  // r-3 takes w0 and w1

  EXPECT_EQ(world.run(RunId{1}).nodes[0].worker, "w2");
  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued);
  EXPECT_EQ(world.run(RunId{3}).state, RunState::kAssigned);
}

TEST(ScheduleTest, AnImpossibleRunHoldsNobodyUp) {
  World world;
  Join(&world, 2);

  world.Submit(Wanting(5));
  SubmissionSpec on_gpu = Wanting(1);
  on_gpu.workload = TrainerWorkload{.backend = "cuda"};
  world.Submit(on_gpu);
  world.Submit(Wanting(2));

  EXPECT_EQ(world.run(RunId{2}).state, RunState::kQueued) << "no worker has that backend";
  EXPECT_EQ(world.run(RunId{3}).state, RunState::kAssigned);
}

TEST(ScheduleTest, KeepsOrganizationsWithinTheirLimits) {
  World world({.organization_run_limit = 1, .organization_run_limits = {{"big", 2}}});
  Join(&world, 4);

  for (int i = 0; i < 3; ++i)
    world.Submit(Wanting(1, "lab"));
  for (int i = 0; i < 3; ++i)
    world.Submit(Wanting(1, "big"));

  EXPECT_EQ(world.state().active, (std::set<RunId>{RunId{1}, RunId{4}, RunId{5}}));
  const auto why = std::get<Explanation>(*world.Do(ExplainSubmission{SubmissionId{2}}));
  EXPECT_EQ(ToString(why.reason), "ORGANIZATION_LIMIT");
}

SubmissionSpec Set(int node_count, int run_count) {
  SubmissionSpec spec = Wanting(node_count);
  spec.run_count = run_count;
  spec.replacement_count_max = 1;
  return spec;
}

TEST(SetNodesTest, AllRunsOfASetUseTheNodesOfItsFirstInTheirOrder) {
  World world;
  Join(&world, 4);
  world.Submit(Wanting(1));  // r-1 holds w0
  const SubmissionId set = world.Submit(Set(2, 3));
  world.Succeed(RunId{1});  // w0 is free, and sorts first

  for (int64_t run = 2; run <= 4; ++run) {
    EXPECT_THAT(NodeNames(world.run(RunId{run})), ElementsAre("w1", "w2"));
    if (run < 4) {
      EXPECT_EQ(world.run(RunId{run + 1}).state, RunState::kQueued) << "w0, w3 are free";
    }
    world.Succeed(RunId{run});
  }
  EXPECT_EQ(world.submission(set).state, SubmissionState::kChecking);
}

TEST(SetNodesTest, OthersTakeWhatASetDoesNotWaitFor) {
  World world;
  Join(&world, 4);
  world.Submit(Set(2, 2));  // r-1 on w0 and w1, which r-2 waits for
  world.Submit(Set(2, 2));  // r-3

  EXPECT_THAT(NodeNames(world.run(RunId{3})), ElementsAre("w2", "w3"));
  world.Submit(Set(1, 1));  // r-5 may not keep r-2 from its nodes
  world.Succeed(RunId{1});
  EXPECT_THAT(NodeNames(world.run(RunId{2})), ElementsAre("w0", "w1"));
}

TEST(SetNodesTest, ASilentNodeIsWaitedForAndALostOneReplacedInItsPlace) {
  World world({.suspect_after_us = 10 * testing::kSecond, .lost_after_us = 60 * testing::kSecond});
  Join(&world, 3);
  const SubmissionId set = world.Submit(Set(2, 2));
  world.Succeed(RunId{1});
  world.Executing("w0", RunId{2});
  world.Executing("w1", RunId{2});
  world.Finished("w1", RunId{2}, 128 + 9);  // killed: a replacement is due
  world.Sync("w1").IgnoreError();
  world.Wait(11 * testing::kSecond);
  world.Sync("w1").IgnoreError();
  world.Sync("w2").IgnoreError();
  ASSERT_EQ(world.worker("w0").state, WorkerState::kSuspect);
  ASSERT_TRUE(world.state().queued.empty()) << "w0 may still report what r-2 ended of";

  world.Wait(50 * testing::kSecond);
  world.Sync("w1").IgnoreError();
  world.Sync("w2").IgnoreError();

  ASSERT_EQ(world.worker("w0").state, WorkerState::kLost);
  EXPECT_THAT(NodeNames(world.run(RunId{3})), ElementsAre("w2", "w1"));
  EXPECT_EQ(world.submission(set).runs.size(), 3u);
}

TEST(SetNodesTest, ADrainedNodeIsReplacedAndComesBackForOthersOnly) {
  World world;
  Join(&world, 3);
  world.Submit(Set(2, 3));
  ASSERT_TRUE(world.Do(DrainWorker{.worker = "w0"}).ok());
  world.Succeed(RunId{1});
  EXPECT_THAT(NodeNames(world.run(RunId{2})), ElementsAre("w2", "w1"));
  ASSERT_TRUE(world.Do(ResumeWorker{.worker = "w0"}).ok());
  world.Succeed(RunId{2});

  EXPECT_THAT(NodeNames(world.run(RunId{3})), ElementsAre("w2", "w1"));
}

TEST(SetNodesTest, ANodeIsKnownByItsLabelWhereWorkersComeAndGo) {
  World world;
  world.labels = {{"a", {{"node", "n2"}}}, {"b", {{"node", "n1"}}}};
  for (const char* worker : {"a", "b"})
    ASSERT_TRUE(world.Sync(worker).ok());
  world.Submit(Set(2, 2));
  EXPECT_THAT(NodeNames(world.run(RunId{1})), ElementsAre("n2", "n1"));
  world.Succeed(RunId{1});
  const std::vector<std::string> workers = {world.run(RunId{2}).nodes[0].worker,
                                            world.run(RunId{2}).nodes[1].worker};
  EXPECT_THAT(workers, ElementsAre("a", "b"));
  EXPECT_EQ(world.Fold(), world.state());
}

// Random submissions, workers, ends and silences; after each step: no worker serves two runs, every
// gang is whole, and nobody waits who could be placed first. At the end everything has run.
TEST(ScheduleTest, IsSafeAndFairWhateverHappens) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Stream random(seed, Purpose::kTest);
    uint64_t draw = 0;
    const auto below = [&](uint32_t bound) { return random.Below(draw++, bound); };
    World world;
    Join(&world, 6);
    for (int step = 0; step < 120; ++step) {
      const uint32_t what = below(4);
      if (what == 0) world.Submit(Wanting(1 + static_cast<int>(below(6))));
      if (what == 1 && !world.state().active.empty()) world.Succeed(*world.state().active.begin());
      if (what >= 2) {
        const std::string name = absl::StrCat("w", below(6));
        const RunId held = world.worker(name).run;
        if (held.is_none()) {
          ASSERT_TRUE(world.Sync(name).ok());
        } else {
          world.Executing(name, held);
        }
      }
      std::set<std::string> busy;
      for (const RunId id : world.state().active) {
        const core::Run& run = world.run(id);
        ASSERT_EQ(static_cast<int>(run.nodes.size()),
                  world.submission(run.submission).spec.node_count);
        for (const RunNode& node : run.nodes) {
          ASSERT_TRUE(busy.insert(node.worker).second) << node.worker << " serves two runs";
          ASSERT_EQ(world.worker(node.worker).run, id);
        }
      }
      if (!world.state().queued.empty()) {
        const core::Run& head = world.run(*world.state().queued.begin());
        ASSERT_GT(world.submission(head.submission).spec.node_count,
                  6 - static_cast<int>(busy.size()))
            << "the head waits although it would fit";
      }
    }
    while (!world.state().active.empty())
      world.Succeed(*world.state().active.begin());
    EXPECT_TRUE(world.state().queued.empty());
  }
}

TEST(ExplainTest, NamesWhatWouldHelp) {
  World world;
  world.labels["w0"] = {{"rack", "a"}};
  const SubmissionId two = world.Submit(Wanting(2));
  const auto reason = [&](SubmissionId id) {
    return std::string(ToString(std::get<Explanation>(*world.Do(ExplainSubmission{id})).reason));
  };

  EXPECT_EQ(reason(two), "LABELS");
  Join(&world, 2);
  EXPECT_EQ(reason(two), "RUNNING");
  const SubmissionId next = world.Submit(Wanting(2));
  EXPECT_EQ(reason(next), "RESOURCES");
  const SubmissionId third = world.Submit(Wanting(1));
  const auto why = std::get<Explanation>(*world.Do(ExplainSubmission{third, {.sees_all = true}}));
  EXPECT_EQ(ToString(why.reason), "PRIORITY");
  EXPECT_EQ(why.queue_position, 2);
  EXPECT_THAT(why.explanation, ::testing::HasSubstr("run r-2 was there before"));
  const auto apart = std::get<Explanation>(*world.Do(ExplainSubmission{third}));
  EXPECT_EQ(apart.queue_position, 1) << "of what nobody sees";
  EXPECT_THAT(apart.explanation, ::testing::HasSubstr("another run was there before"));
  EXPECT_THAT(apart.explanation, ::testing::Not(::testing::HasSubstr("r-2")));
  SubmissionSpec labelled = Wanting(1);
  labelled.worker_labels = {{"rack", "z"}};
  const auto lonely = std::get<Explanation>(*world.Do(ExplainSubmission{world.Submit(labelled)}));
  EXPECT_THAT(lonely.explanation, ::testing::HasSubstr("labelled rack=z; 0 match"));
  EXPECT_THAT(lonely.remedy, ::testing::HasSubstr("add 1 workers"));
  world.Wait(11 * testing::kSecond);
  EXPECT_EQ(reason(next), "WORKERS_LOST");
  EXPECT_FALSE(world.Do(ExplainSubmission{SubmissionId{99}}).ok());
  EXPECT_TRUE(world.Do(CancelSubmission{next, ""}).ok());
  EXPECT_EQ(reason(next), "ENDED");
}

TEST(ExplainTest, NamesWhoHasBeenTakenOut) {
  World world;
  Join(&world, 2);
  ASSERT_TRUE(world.Do(DrainWorker{"w1", "new disk"}, "root").ok());
  const SubmissionId id = world.Submit(Wanting(2));

  const auto why = std::get<Explanation>(*world.Do(ExplainSubmission{id, {.sees_all = true}}));
  EXPECT_EQ(ToString(why.reason), "WORKERS_DRAINED");
  EXPECT_EQ(
      why.explanation,
      "needs 2 workers with backend onednn; of the 2 that match, 1 is drained: w1 (new disk)");
  EXPECT_THAT(why.remedy, ::testing::HasSubstr("assay node resume w1"));
  // Whose nodes these are, and why, is not for everybody.
  const auto told = std::get<Explanation>(*world.Do(ExplainSubmission{id}));
  EXPECT_EQ(ToString(told.reason), "WORKERS_DRAINED");
  EXPECT_THAT(told.explanation, ::testing::Not(::testing::HasSubstr("w1")));
  EXPECT_THAT(told.remedy, ::testing::HasSubstr("ask an operator"));

  ASSERT_TRUE(world.Do(ResumeWorker{"w1"}, "root").ok());
  EXPECT_EQ(ToString(std::get<Explanation>(*world.Do(ExplainSubmission{id})).reason), "RUNNING");
}

TEST(ExplainTest, SaysWhenNothingIsWaitedFor) {
  World world;
  Join(&world, 1);
  const SubmissionId id = world.Submit(Wanting(1));
  world.Succeed(RunId{1});

  const auto why = std::get<Explanation>(*world.Do(ExplainSubmission{id}));

  EXPECT_EQ(ToString(why.reason), "NOT_WAITING");
  EXPECT_THAT(why.explanation, ::testing::HasSubstr("score"));
}

TEST(ExplainTest, PlansWithoutPromising) {
  World world;
  Join(&world, 3);
  world.Submit(Wanting(1));
  world.Submit(Wanting(3));

  const auto plan =
      std::get<PlacementReply>(*world.Do(PlanPlacement{Wanting(1), {.sees_all = true}}));

  EXPECT_EQ(plan.worker_count_matching, 3);
  EXPECT_EQ(plan.worker_count_free, 2);
  EXPECT_EQ(plan.run_count_ahead, 2);
  const VisibleTo rival = {.organization = "rival", .sees_published = true};
  EXPECT_EQ(std::get<PlacementReply>(*world.Do(PlanPlacement{Wanting(1), rival})).run_count_ahead,
            0);
}

}  // namespace
}  // namespace assay::core
