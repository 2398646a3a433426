// Checks of nodes before the runs of a set: who is asked when, what the numbers mean, and that no
// run starts on a node that has failed.

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/exit_code.h"
#include "server/core/core.h"
#include "server/core/node_checks.h"
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
using ::testing::SizeIs;

Policy Gate(CheckPolicy memory = CheckPolicy::kGate) {
  Policy policy;
  policy.preflight.checks = {{.check = "quiet", .policy = CheckPolicy::kWarn},
                             {.check = "clock", .policy = memory},
                             {.check = "memory", .policy = memory}};
  return policy;
}

class PreflightTest : public ::testing::Test {
 protected:
  // Whether the worker is asked to check its node; it says that it does.
  bool IsAsked(const std::string& worker) {
    const Desired desired = *world_.Sync(worker);
    if (desired.action != DesiredAction::kCheck) return false;
    EXPECT_EQ(world_.Sync(worker, {.preflight = {.number = desired.generation}})->action,
              DesiredAction::kCheck);
    return true;
  }

  // The worker answers what it is asked, with that rate of memory.
  Desired Answer(const std::string& worker, double memory, const std::string& problem = "") {
    return *world_.Sync(worker, Report(world_.worker(worker).preflight->number, memory, problem));
  }
  static WorkerReport Report(int64_t number, double memory, const std::string& problem = "") {
    return {
        .preflight = {
            .number = number,
            .is_done = true,
            .checks = {{.check = "quiet", .problem = problem},
                       {.check = "memory", .is_measured = true, .value = memory, .unit = "GB/s"}}}};
  }

  SubmissionId Submit(int32_t node_count, int32_t run_count = 1) {
    SubmissionSpec spec = SomeSpec();
    spec.node_count = node_count;
    spec.run_count = run_count;
    return world_.Submit(spec);
  }
  // A set that has nodes w0 to w2 checked, with that rate, and ends.
  void CheckAll(double memory) {
    const SubmissionId id = Submit(3);
    for (const char* worker : {"w0", "w1", "w2"})
      Answer(worker, memory);
    world_.Succeed(world_.submission(id).runs.front());
  }
  void Come(int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_THAT(world_.Sync(absl::StrCat("w", i)), IsOk());
  }
  std::vector<std::string> GangOf(RunId run) {
    std::vector<std::string> gang;
    for (const RunNode& node : world_.run(run).nodes)
      gang.push_back(node.worker);
    return gang;
  }
  Explanation Why(SubmissionId id) {
    return std::get<Explanation>(*world_.Do(ExplainSubmission{id}));
  }
  const Preflight& preflight(const std::string& worker) { return *world_.worker(worker).preflight; }

  World world_{Gate()};
};

TEST_F(PreflightTest, NodesAreCheckedBeforeTheFirstRunOfASetAndNotAgain) {
  Come(2);
  const SubmissionId id = Submit(2, /*run_count=*/2);
  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kQueued);
  EXPECT_TRUE(IsAsked("w0"));
  EXPECT_TRUE(IsAsked("w1"));
  EXPECT_EQ(ToString(Why(id).reason), "PREFLIGHT");
  EXPECT_EQ(Why(id).explanation, "pre-flight of nodes w0, w1 goes on, for at most 90 s more");

  Answer("w0", 12.5);
  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kQueued) << "w1 is at it";
  Answer("w1", 12.0);
  EXPECT_THAT(GangOf(RunId{1}), ElementsAre("w0", "w1"));
  EXPECT_EQ(preflight("w0").state, PreflightState::kPassed);
  EXPECT_EQ(preflight("w0").checks.back().value, 12.5);
  EXPECT_THAT(world_.submission(id).checked_nodes, ElementsAre("w0", "w1"));

  world_.Succeed(RunId{1});
  EXPECT_THAT(GangOf(RunId{2}), ElementsAre("w0", "w1")) << "without another check";
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(PreflightTest, EachRunIsToldWhatItsNodeHasPassedForItsSet) {
  Come(1);
  SubmissionSpec spec = SomeSpec();
  spec.node_count = 1;
  spec.run_count = 1;
  spec.replacement_count_max = 1;
  const SubmissionId first = world_.Submit(spec);
  Answer("w0", 12.5);
  const Desired desired = *world_.Sync("w0");
  ASSERT_TRUE(desired.order.has_value() && desired.order->preflight.has_value());
  EXPECT_EQ(desired.order->preflight->submission, first);
  EXPECT_EQ(desired.order->preflight->checks.back().value, 12.5);

  // Another set has its turn on the node before the first one has its replacement.
  const SubmissionId second = Submit(1);
  world_.Executing("w0", RunId{1});
  world_.Finished("w0", RunId{1}, static_cast<int>(ExitCode::kNodeFailed));
  world_.Sync("w0").IgnoreError();
  Answer("w0", 11.0);
  EXPECT_EQ(world_.Sync("w0")->order->preflight->submission, second);
  world_.Succeed(RunId{2});
  ASSERT_THAT(GangOf(RunId{3}), ElementsAre("w0"));
  EXPECT_EQ(preflight("w0").submission, second) << "the node's last";
  EXPECT_EQ(world_.Sync("w0")->order->preflight, desired.order->preflight);

  world_.Succeed(RunId{3});
  for (const SubmissionId id : {first, second})
    ASSERT_THAT(world_.Do(SetScored{id, 12.5, {}, "good"}), IsOk());
  EXPECT_TRUE(world_.state().passed.empty()) << "no run needs it any more";
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(PreflightTest, NothingIsKeptForASetThatEndsAtTheSameTime) {
  Come(1);
  const SubmissionId id = Submit(1);
  std::vector<Command> commands;
  commands.push_back({"alice", CancelSubmission{id, ""}});
  commands.push_back({"w0", Synchronize{.worker = "w0",
                                        .description = world_.Describe("w0"),
                                        .report = Report(preflight("w0").number, 12.0)}});
  world_.Handle(std::move(commands));
  EXPECT_TRUE(world_.state().passed.empty());
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(PreflightTest, ARunOfASetThatNeverHadOneIsToldNone) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  const Desired desired = *world.Sync("w0");
  ASSERT_TRUE(desired.order.has_value());
  EXPECT_FALSE(desired.order->preflight.has_value());
}

TEST_F(PreflightTest, ANodeBelowItsTypesMedianIsDrainedAndTheSetStartsOnOthers) {
  Come(3);
  CheckAll(12.0);
  const SubmissionId id = Submit(2);
  Answer("w0", 9.0);
  EXPECT_EQ(preflight("w0").state, PreflightState::kFailed);
  EXPECT_EQ(preflight("w0").checks.back().median, 12.0);
  EXPECT_EQ(world_.worker("w0").state, WorkerState::kDraining);
  EXPECT_EQ(world_.worker("w0").state_reason,
            "pre-flight: memory 9.0 GB/s, below 80 % of the median 12.0 of the last 3 of its type");
  Answer("w1", 9.7);
  EXPECT_TRUE(IsAsked("w2"));
  EXPECT_EQ(Why(id).explanation,
            "pre-flight of node w2 goes on, for at most 90 s more; pre-flight of node w0: memory "
            "9.0 GB/s, below 80 % of the median 12.0 of the last 3 of its type");
  Answer("w2", 12.0);
  EXPECT_THAT(GangOf(RunId{2}), ElementsAre("w1", "w2"));
  EXPECT_THAT(world_.submission(id).checked_nodes, ElementsAre("w1", "w2"));
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(PreflightTest, WithoutOthersTheSetWaitsAndSaysWhy) {
  Come(3);
  CheckAll(12.0);
  const SubmissionId id = Submit(3);
  Answer("w0", 3.1);
  Answer("w1", 12.0);
  Answer("w2", 12.0);
  EXPECT_EQ(world_.run(RunId{2}).state, RunState::kQueued);
  EXPECT_EQ(ToString(Why(id).reason), "WORKERS_DRAINED");
  EXPECT_THAT(Why(id).explanation,
              HasSubstr("pre-flight of node w0: memory 3.1 GB/s, below 80 % of the median 12.0"));

  // The operator mends it: it is checked again.
  ASSERT_THAT(world_.Do(ResumeWorker{"w0"}), IsOk());
  EXPECT_TRUE(IsAsked("w0"));
  Answer("w0", 12.0);
  EXPECT_THAT(GangOf(RunId{2}), ElementsAre("w0", "w1", "w2"));
}

TEST_F(PreflightTest, ANodeThatDoesNotAnswerHasFailed) {
  Come(3);
  const SubmissionId id = Submit(2);
  EXPECT_TRUE(IsAsked("w0"));
  Answer("w1", 12.0);
  const std::optional<int64_t> wakeup_us = world_.core().NextWakeupUs();
  ASSERT_TRUE(wakeup_us.has_value());
  for (int k = 0; k < 18; ++k) {
    world_.Wait(5 * kSecond);
    for (const char* worker : {"w1", "w2"})
      ASSERT_THAT(world_.Sync(worker), IsOk());
  }
  EXPECT_EQ(preflight("w0").reason, "no answer within 90 s");
  EXPECT_TRUE(world_.worker("w0").is_drain_requested);
  EXPECT_TRUE(IsAsked("w2"));
  Answer("w2", 12.0);
  EXPECT_THAT(GangOf(RunId{1}), ElementsAre("w1", "w2"));
  EXPECT_EQ(world_.submission(id).preflight_error, "pre-flight of node w0: no answer within 90 s");
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(PreflightTest, AnAnswerThatComesTooLateOrTwiceChangesNothing) {
  Come(2);
  Submit(1);
  const int64_t number = preflight("w0").number;
  Answer("w0", 12.0);
  EXPECT_THAT(GangOf(RunId{1}), ElementsAre("w0"));
  const size_t count = world_.log().size();
  EXPECT_EQ(world_.Sync("w0", Report(number, 3.0))->action, DesiredAction::kExecute);
  EXPECT_EQ(world_.Sync("w1", Report(number, 3.0))->action, DesiredAction::kIdle);
  EXPECT_THAT(world_.log(), SizeIs(count));
}

TEST_F(PreflightTest, ARestartOfTheCoordinatorOrTheAgentGoesOn) {
  Come(1);
  Submit(1);
  const int64_t number = preflight("w0").number;
  Core restarted(Gate(), world_.state(), world_.now_us());
  const Outcome outcome = restarted.Handle(
      {{"w0", Synchronize{.worker = "w0", .description = world_.Describe("w0")}}}, world_.now_us());
  const Desired desired = std::get<SynchronizeReply>(*outcome.replies[0]).desired;
  EXPECT_EQ(desired.action, DesiredAction::kCheck);
  EXPECT_EQ(desired.generation, number);
  ASSERT_TRUE(desired.checks.has_value());
  EXPECT_THAT(desired.checks->checks, ElementsAre("quiet", "clock", "memory"));
  EXPECT_EQ(desired.checks->dataset_path, "/data/cosmo32");
  EXPECT_TRUE(desired.checks->is_staged);

  world_.incarnations["w0"] = "i2";
  EXPECT_EQ(world_.Sync("w0")->generation, number);
}

TEST_F(PreflightTest, ANodeThatIsSwappedInIsCheckedFirst) {
  Come(3);
  const SubmissionId id = Submit(2, /*run_count=*/2);
  Answer("w0", 12.0);
  Answer("w1", 12.0);
  ASSERT_THAT(world_.Do(DrainWorker{"w1", "disk"}), IsOk());
  world_.Succeed(RunId{1});
  EXPECT_EQ(world_.run(RunId{2}).state, RunState::kQueued);
  EXPECT_TRUE(IsAsked("w2"));
  EXPECT_FALSE(IsAsked("w0"));
  Answer("w2", 12.0);
  EXPECT_THAT(GangOf(RunId{2}), ElementsAre("w0", "w2"));
  EXPECT_THAT(world_.submission(id).checked_nodes, ElementsAre("w0", "w1", "w2"));
}

TEST_F(PreflightTest, NobodyIsCheckedForASetThatHasEnded) {
  Come(1);
  const SubmissionId id = Submit(1);
  EXPECT_TRUE(IsAsked("w0"));
  ASSERT_THAT(world_.Do(CancelSubmission{id, ""}), IsOk());
  EXPECT_EQ(preflight("w0").state, PreflightState::kDropped);
  EXPECT_EQ(world_.worker("w0").state, WorkerState::kAlive);
  EXPECT_EQ(world_.Sync("w0")->action, DesiredAction::kIdle);
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(PreflightTest, InThePlaceOfANodeThatLeavesAnotherIsChecked) {
  Come(2);
  Submit(1);
  world_.is_leaving = true;
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  world_.is_leaving = false;
  EXPECT_EQ(preflight("w0").state, PreflightState::kDropped);
  EXPECT_TRUE(IsAsked("w1"));
}

TEST_F(PreflightTest, OnlyAGateKeepsANodeFromRuns) {
  World world(Gate(CheckPolicy::kWarn));
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  const int64_t number = world.worker("w0").preflight->number;
  ASSERT_THAT(world.Sync("w0", Report(number, 12.0, "1.9 of 2 cores work for others")), IsOk());
  EXPECT_EQ(world.worker("w0").preflight->state, PreflightState::kPassed);
  EXPECT_EQ(world.worker("w0").preflight->checks.front().problem, "1.9 of 2 cores work for others");
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kAssigned);
}

TEST_F(PreflightTest, WithoutAGateAnAnswerIsNotNeeded) {
  World world(Gate(CheckPolicy::kRecord));
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  for (int k = 0; k < 18; ++k) {
    world.Wait(5 * kSecond);
    ASSERT_THAT(world.Sync("w0"), IsOk());
  }
  EXPECT_EQ(world.worker("w0").preflight->reason, "no answer within 90 s");
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kAssigned);
}

TEST_F(PreflightTest, AClockThatIsSurelyOffFails) {
  Come(2);
  Submit(1);
  world_.clocks["w0"] = {.offset_us = -70'000, .uncertainty_us = 30'000};
  Answer("w0", 12.0);
  EXPECT_EQ(preflight("w0").state, PreflightState::kPassed) << "perhaps it is 40 ms";
  EXPECT_EQ(preflight("w0").checks[1].value, 70.0);
  Submit(1);
  world_.clocks["w1"] = {.offset_us = 70'000, .uncertainty_us = 1'000};
  Answer("w1", 12.0);
  EXPECT_EQ(preflight("w1").reason, "clock 70.0 ms off from the coordinator's clock, over 50 ms");
}

TEST_F(PreflightTest, FewNumbersSayNothingAndTenAreKept) {
  Come(1);
  double rate = 100;
  for (int64_t k = 1; k <= 13; ++k) {
    Submit(1);
    Answer("w0", rate);
    ASSERT_THAT(GangOf(RunId{k}), ElementsAre("w0")) << k;
    EXPECT_EQ(preflight("w0").checks.back().median.has_value(), k > 3) << k;
    world_.Succeed(RunId{k});
    rate = rate == 100 ? 82 : 100;
  }
  ASSERT_THAT(world_.state().rates, SizeIs(1));
  EXPECT_EQ(world_.state().rates.begin()->first.check, "memory");
  EXPECT_THAT(world_.state().rates.begin()->second.values, SizeIs(kRateCountMax));
}

TEST_F(PreflightTest, NodesOfOtherTypesAreNotCompared) {
  Capabilities a{.core_count = 2, .memory_bytes = int64_t{16} << 30, .cpu_model = "A"};
  EXPECT_EQ(NodeType(a), "A, 2 cores, 16 GiB");
  a.accelerator_count = 4;
  a.accelerator_model = "H100";
  EXPECT_EQ(NodeType(a), "A, 2 cores, 16 GiB, 4 x H100");
  EXPECT_EQ(NodeType({}), "unknown CPU, 0 cores, 0 GiB");
}

TEST_F(PreflightTest, WhileASetsNodesAreCheckedOthersTakeTheRest) {
  Come(3);
  Submit(2);
  EXPECT_TRUE(IsAsked("w0"));
  const SubmissionId second = Submit(1);
  EXPECT_TRUE(IsAsked("w2"));
  EXPECT_EQ(preflight("w2").submission, second);
  Answer("w0", 12.0);
  Submit(1);
  EXPECT_EQ(preflight("w0").state, PreflightState::kPassed) << "w0 is kept";
  Answer("w2", 12.0);
  EXPECT_THAT(GangOf(RunId{2}), ElementsAre("w2"));
  Answer("w1", 12.0);
  EXPECT_THAT(GangOf(RunId{1}), ElementsAre("w0", "w1"));
}

TEST_F(PreflightTest, AnAnswerThatIsNoNumberIsRefused) {
  Come(1);
  Submit(1);
  for (const double value : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_THAT(world_.Sync("w0", Report(preflight("w0").number, value)), StatusIs(kInvalid));
  WorkerReport many = Report(preflight("w0").number, 1);
  many.preflight.checks.resize(kNodeCheckCountMax + 1);
  EXPECT_THAT(world_.Sync("w0", many), StatusIs(kInvalid, HasSubstr("at most 32 checks")));
}

TEST_F(PreflightTest, AProfileMayHaveAPolicyOfItsOwn) {
  Policy policy = Gate();
  policy.profile_preflights["quick"] = {};
  SubmissionSpec spec = SomeSpec();
  EXPECT_EQ(FindPreflight(policy, spec), &policy.preflight);
  spec.fleet = "gpu";
  EXPECT_EQ(FindPreflight(policy, spec), &policy.preflight);
  spec.fleet = "quick";
  EXPECT_EQ(FindPreflight(policy, spec), nullptr);
  EXPECT_EQ(FindPreflight({}, spec), nullptr);
}

TEST_F(PreflightTest, ThroughputSetsCheckAllOfTheirNodesFirst) {
  Come(3);
  SubmissionSpec spec = SomeSpec();
  spec.metric = std::string(kThroughput);
  spec.run_count = 3;
  world_.Submit(spec);
  for (const char* worker : {"w0", "w1"})
    Answer(worker, 12.0);
  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kQueued);
  Answer("w2", 12.0);
  for (int64_t k = 1; k <= 3; ++k)
    EXPECT_EQ(world_.run(RunId{k}).state, RunState::kAssigned);
}

}  // namespace
}  // namespace assay::core
