// The check of a gang's fabric: who is asked when, who is to blame for a slow link, and that no run
// starts on a gang whose fabric has not passed.

#include "server/core/fabric.h"

#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/exit_code.h"
#include "server/core/core.h"
#include "server/core/desired.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::kInvalid;
using core::testing::kSecond;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Policy FabricPolicy(CheckPolicy fabric = CheckPolicy::kGate) {
  Policy policy;
  policy.secret = "secret";
  policy.preflight.checks = {{.check = "memory", .policy = CheckPolicy::kGate},
                             {.check = kFabricLinkRate, .policy = fabric},
                             {.check = kFabricLatency, .policy = CheckPolicy::kWarn}};
  return policy;
}

// All links alike, but those that are named.
FabricReport Links(int count, double gb_per_s, const std::set<int>& slow = {}) {
  FabricReport report{.all_reduce_us = 20, .all_reduce_gb_per_s = gb_per_s};
  for (int k = 0; k < count; ++k)
    report.links.push_back(
        {.latency_us = 2, .gb_per_s = slow.contains(k) ? gb_per_s / 10 : gb_per_s});
  return report;
}

class FabricTest : public ::testing::Test {
 protected:
  explicit FabricTest(const Policy& policy = FabricPolicy()) : world_(policy) {}

  void Come(int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_THAT(world_.Sync(absl::StrCat("w", i)), IsOk());
  }
  SubmissionId Submit(int32_t node_count, int32_t run_count = 1) {
    SubmissionSpec spec = SomeSpec();
    spec.node_count = node_count;
    spec.run_count = run_count;
    return world_.Submit(spec);
  }
  // The worker has passed alone.
  void Pass(const std::string& worker) {
    const PreflightReport report{
        .number = preflight(worker).number,
        .is_done = true,
        .checks = {{.check = "memory", .is_measured = true, .value = 10, .unit = "GB/s"}}};
    ASSERT_THAT(world_.Sync(worker, {.preflight = report}), IsOk());
  }
  void PassAll(int count) {
    for (int i = 0; i < count; ++i)
      Pass(absl::StrCat("w", i));
  }
  absl::StatusOr<Desired> Tell(const std::string& worker, FabricReport report) {
    return world_.Sync(worker, {.preflight = {.number = preflight(worker).number,
                                              .is_done = true,
                                              .fabric = std::move(report)}});
  }
  // The worker's part, if it is asked to check the fabric and nothing else.
  FabricOrder Asked(const std::string& worker) {
    const Desired desired = *world_.Sync(worker);
    if (desired.action != DesiredAction::kCheck || !desired.checks->fabric.has_value()) return {};
    EXPECT_THAT(desired.checks->checks, ElementsAre("fabric", "fabric-latency"));
    return *desired.checks->fabric;
  }
  // Sets of three nodes that have passed, so that there is something to compare with.
  void HaveMedians() {
    const SubmissionId id = Submit(3);
    PassAll(3);
    ASSERT_THAT(Tell("w0", Links(3, 10)), IsOk());
    world_.Succeed(world_.submission(id).runs.front());
  }
  std::vector<std::string> GangOf(RunId run) {
    std::vector<std::string> gang;
    for (const RunNode& node : world_.run(run).nodes)
      gang.push_back(node.worker);
    return gang;
  }
  const Preflight& preflight(const std::string& worker) { return *world_.worker(worker).preflight; }

  World world_;
};

TEST_F(FabricTest, AGangThatHasPassedAloneMeasuresItsFabricOnceAndThenRuns) {
  Come(3);
  const SubmissionId id = Submit(3, /*run_count=*/2);
  Pass("w0");
  Pass("w1");
  EXPECT_EQ(Asked("w0").node_count, 0) << "w2 is at it";
  Pass("w2");
  const FabricOrder root = Asked("w0");
  const FabricOrder last = Asked("w2");
  EXPECT_EQ(root.rank, 0);
  EXPECT_EQ(last.rank, 2);
  EXPECT_EQ(last.node_count, 3);
  EXPECT_EQ(last.rendezvous_address, world_.Describe("w0").capabilities.rendezvous_address);
  EXPECT_EQ(root.token, last.token);
  EXPECT_THAT(root.token, ::testing::Not(HasSubstr("secret")));
  EXPECT_EQ(root.name, last.name);
  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kQueued);

  ASSERT_THAT(Tell("w0", Links(3, 10, {0})), IsOk());
  EXPECT_THAT(GangOf(RunId{1}), ElementsAre("w0", "w1", "w2"));
  const NodeCheck& check = preflight("w1").checks[1];
  EXPECT_EQ(check.check, "fabric");
  EXPECT_EQ(check.value, 10) << "of the better link";
  EXPECT_EQ(check.detail,
            "all-reduce of all 3: 8 bytes in 20.0 us, 64 MiB at 10.00 GB/s; with w2: 2.0 us, 10.00 "
            "GB/s; with w0: 2.0 us, 1.00 GB/s");
  EXPECT_EQ(preflight("w1").checks[0].check, "memory") << "what it has measured alone stays";
  EXPECT_THAT(world_.submission(id).checked_nodes, ElementsAre("w0", "w1", "w2"));

  world_.Succeed(RunId{1});
  EXPECT_THAT(GangOf(RunId{2}), ElementsAre("w0", "w1", "w2")) << "without another check";
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(FabricTest, OneNodeHasNoFabric) {
  Come(1);
  Submit(1);
  Pass("w0");
  EXPECT_THAT(GangOf(RunId{1}), ElementsAre("w0"));
}

TEST_F(FabricTest, TheNodeBetweenTwoSlowLinksIsDrainedAndTheNewGangIsMeasured) {
  Come(4);
  HaveMedians();
  const SubmissionId id = Submit(3);
  PassAll(3);
  ASSERT_THAT(Tell("w0", Links(3, 10, {0, 1})), IsOk());
  EXPECT_EQ(world_.worker("w1").state, WorkerState::kDraining);
  EXPECT_EQ(world_.worker("w1").state_reason,
            "pre-flight: fabric 1.0 GB/s, below 80 % of the median 10.0 of the last 3 of its type");
  EXPECT_EQ(preflight("w0").state, PreflightState::kPassed);
  EXPECT_EQ(preflight("w2").state, PreflightState::kPassed);
  EXPECT_THAT(world_.submission(id).preflight_error, HasSubstr("pre-flight of node w1: fabric"));
  EXPECT_THAT(GangOf(RunId{2}), IsEmpty());

  EXPECT_EQ(preflight("w3").checks.front().check, "memory");
  Pass("w3");
  EXPECT_EQ(Asked("w3").node_count, 3) << "the others have passed alone, but not with w3";
  ASSERT_THAT(Tell("w0", Links(3, 10)), IsOk());
  EXPECT_THAT(GangOf(RunId{2}), ElementsAre("w0", "w2", "w3"));
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(FabricTest, OfTwoNodesBothAreToBlame) {
  Come(3);
  HaveMedians();
  Submit(2);
  PassAll(2);
  ASSERT_THAT(Tell("w0", Links(2, 1)), IsOk());
  EXPECT_EQ(world_.worker("w0").state, WorkerState::kDraining);
  EXPECT_EQ(world_.worker("w1").state, WorkerState::kDraining);
  EXPECT_THAT(GangOf(RunId{2}), IsEmpty());
}

TEST_F(FabricTest, WhoDoesNotReachRankZeroIsDrained) {
  Come(3);
  Submit(3);
  PassAll(3);
  ASSERT_THAT(Tell("w0", {.absent_ranks = {2}}), IsOk());
  EXPECT_EQ(world_.worker("w2").state_reason,
            absl::StrCat("pre-flight: fabric has not reached w0 at ",
                         world_.Describe("w0").capabilities.rendezvous_address));
  EXPECT_EQ(world_.worker("w0").state, WorkerState::kAlive);
  EXPECT_EQ(world_.worker("w1").state, WorkerState::kAlive);
  EXPECT_THAT(GangOf(RunId{1}), IsEmpty());
}

TEST_F(FabricTest, IfNobodyReachesRankZeroItIsToBlame) {
  Come(3);
  Submit(3);
  PassAll(3);
  ASSERT_THAT(Tell("w0", {.absent_ranks = {1, 2}}), IsOk());
  EXPECT_THAT(world_.worker("w0").state_reason,
              HasSubstr("fabric none of the other nodes has reached it at "));
  EXPECT_EQ(world_.worker("w1").state, WorkerState::kAlive);
  EXPECT_EQ(world_.worker("w2").state, WorkerState::kAlive);
}

TEST_F(FabricTest, ARankZeroThatFailsOrIsSilentIsDrainedAndTheOthersGoOn) {
  Come(4);
  Submit(2);
  PassAll(2);
  const PreflightReport failed{.number = preflight("w0").number,
                               .is_done = true,
                               .checks = {{.check = "fabric", .problem = "it has no program"}}};
  ASSERT_THAT(world_.Sync("w0", {.preflight = failed}), IsOk());
  EXPECT_EQ(world_.worker("w0").state_reason, "pre-flight: fabric it has no program");
  EXPECT_EQ(world_.worker("w1").state, WorkerState::kAlive);

  Pass("w2");
  EXPECT_EQ(Asked("w1").rank, 0);
  for (int k = 0; k < 31; ++k) {
    world_.Wait(5 * kSecond);
    for (const char* worker : {"w1", "w2", "w3"})
      ASSERT_THAT(world_.Sync(worker), IsOk());
  }
  EXPECT_EQ(preflight("w1").reason, "no answer within 150 s");
  EXPECT_TRUE(world_.worker("w1").is_drain_requested);
  EXPECT_FALSE(world_.worker("w2").is_drain_requested);
  Pass("w3");
  EXPECT_EQ(Asked("w2").node_count, 2);
  ASSERT_THAT(Tell("w2", Links(2, 10)), IsOk());
  EXPECT_THAT(GangOf(RunId{1}), ElementsAre("w2", "w3"));
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(FabricTest, WhatCouldNotBeMeasuredSpeaksAgainstNobody) {
  Come(2);
  Submit(2);
  PassAll(2);
  ASSERT_THAT(Tell("w0", {.error = "rank 1 (node7) went away"}), IsOk());
  EXPECT_EQ(preflight("w1").checks[1].detail, "rank 1 (node7) went away");
  EXPECT_FALSE(preflight("w1").checks[1].is_measured);
  EXPECT_THAT(GangOf(RunId{1}), ElementsAre("w0", "w1"));
}

TEST_F(FabricTest, WhatTheOthersSayEndsNothing) {
  Come(2);
  Submit(2);
  PassAll(2);
  const Desired again = *Tell("w1", Links(2, 1));
  EXPECT_EQ(again.action, DesiredAction::kCheck);
  EXPECT_EQ(preflight("w1").state, PreflightState::kRunning);
  EXPECT_TRUE(IsSatisfied(again, {.preflight = {.number = again.generation, .is_done = true}}))
      << "it shall not be told again and again";
  const Desired root = *world_.Sync("w0");
  EXPECT_FALSE(IsSatisfied(root, {.preflight = {.number = root.generation, .is_done = true}}));
}

TEST_F(FabricTest, ANodeThatLeavesMeanwhileIsReplacedAndAllAreMeasuredAgain) {
  Come(3);
  Submit(2);
  PassAll(2);
  world_.is_leaving = true;
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  world_.is_leaving = false;
  EXPECT_EQ(preflight("w1").state, PreflightState::kDropped);
  ASSERT_THAT(Tell("w0", Links(2, 10)), IsOk());
  EXPECT_EQ(preflight("w0").checks[1].detail, "a node has left meanwhile");
  Pass("w2");
  EXPECT_EQ(Asked("w2").node_count, 2);
  ASSERT_THAT(Tell("w0", Links(2, 10)), IsOk());
  EXPECT_THAT(GangOf(RunId{1}), ElementsAre("w0", "w2"));
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(FabricTest, TheOthersAreFreeWhenRankZeroLeaves) {
  Come(3);
  Submit(2);
  PassAll(2);
  world_.is_leaving = true;
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  world_.is_leaving = false;
  EXPECT_EQ(preflight("w1").reason, "the check of its gang has ended");
  Pass("w2");
  EXPECT_EQ(Asked("w1").rank, 0);
}

TEST_F(FabricTest, ALatencyOfMoreThanTheMedianIsAProblem) {
  Come(3);
  HaveMedians();
  Submit(3);
  PassAll(3);
  FabricReport slow = Links(3, 10);
  for (FabricLink& link : slow.links)
    link.latency_us = 2.6;
  ASSERT_THAT(Tell("w0", slow), IsOk());
  EXPECT_EQ(preflight("w2").checks[2].problem,
            "2.6 us, more than 1.25 times the median 2.0 of the last 3 of its type");
  EXPECT_EQ(preflight("w2").state, PreflightState::kPassed) << "it is no gate here";
}

TEST_F(FabricTest, ARestartedCoordinatorAsksForTheSame) {
  Come(2);
  Submit(2);
  PassAll(2);
  const FabricOrder before = Asked("w1");
  Core restarted(FabricPolicy(), world_.state(), world_.now_us());
  const Outcome outcome = restarted.Handle(
      {{"w1", Synchronize{.worker = "w1", .description = world_.Describe("w1")}}}, world_.now_us());
  const Desired desired = std::get<SynchronizeReply>(*outcome.replies[0]).desired;
  ASSERT_TRUE(desired.checks.has_value());
  EXPECT_EQ(desired.checks->fabric, before);
}

TEST_F(FabricTest, AReportThatIsNoNumberIsRefused) {
  Come(2);
  Submit(2);
  PassAll(2);
  for (const double value : {-1.0, std::numeric_limits<double>::infinity()})
    EXPECT_THAT(Tell("w0", Links(2, value)),
                StatusIs(kInvalid, HasSubstr("a value of the fabric")));
  EXPECT_THAT(Tell("w0", Links(1025, 1)), StatusIs(kInvalid, HasSubstr("at most 1024 nodes")));
}

class OnlyFabricTest : public FabricTest {
 protected:
  static Policy OnlyFabric() {
    Policy policy = FabricPolicy();
    policy.preflight.checks.erase(policy.preflight.checks.begin());
    return policy;
  }
  OnlyFabricTest() : FabricTest(OnlyFabric()) {}
};

TEST_F(OnlyFabricTest, NobodyIsCheckedAloneForNothing) {
  Come(2);
  Submit(2);
  EXPECT_EQ(Asked("w1").node_count, 2);
  ASSERT_THAT(Tell("w0", Links(2, 10)), IsOk());
  EXPECT_THAT(GangOf(RunId{1}), ElementsAre("w0", "w1"));
  Submit(1);
  EXPECT_EQ(world_.run(RunId{2}).state, RunState::kQueued) << "both are busy";
}

TEST_F(FabricTest, BesideTheFabricAreWhatTheNodesHavePassedAloneForTheSet) {
  Come(2);
  SubmissionSpec spec = SomeSpec();
  spec.node_count = 2;
  spec.run_count = 1;
  spec.replacement_count_max = 1;
  const SubmissionId first = world_.Submit(spec);
  PassAll(2);
  ASSERT_THAT(Tell("w0", Links(1, 10)), IsOk());
  for (const char* worker : {"w0", "w1"})
    world_.Executing(worker, RunId{1});
  // Another set has its turn on w0, which is slower by then.
  const SubmissionId second = Submit(1);
  for (const char* worker : {"w0", "w1"})
    world_.Finished(worker, RunId{1}, static_cast<int>(ExitCode::kNodeFailed));
  Come(2);
  ASSERT_EQ(preflight("w0").submission, second);
  const PreflightReport slower{
      .number = preflight("w0").number,
      .is_done = true,
      .checks = {{.check = "memory", .is_measured = true, .value = 9, .unit = "GB/s"}}};
  ASSERT_THAT(world_.Sync("w0", {.preflight = slower}), IsOk());
  ASSERT_THAT(world_.Do(DrainWorker{"w1", "disk"}), IsOk());
  world_.Succeed(RunId{2});
  Come(3);
  Pass("w2");
  ASSERT_EQ(Asked("w0").node_count, 2) << "the first set's gang is another";
  ASSERT_THAT(Tell("w0", Links(1, 10)), IsOk());

  const Desired desired = *world_.Sync("w0");
  ASSERT_TRUE(desired.order.has_value() && desired.order->preflight.has_value());
  EXPECT_EQ(desired.order->submission, first);
  EXPECT_EQ(desired.order->preflight->checks.front().value, 10);
  EXPECT_EQ(desired.order->preflight->checks.back().check, "fabric-latency");
  EXPECT_EQ(world_.Fold(), world_.state());
}

}  // namespace
}  // namespace assay::core
