// Allocations of a batch system: one for each submission, as long as its runs may need, granted
// late, refused, taken back; and what people are told meanwhile.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/allocate.h"
#include "server/core/doubts.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using core::testing::kSecond;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Launch = LaunchReported::Outcome;

constexpr int64_t kMinute = 60 * kSecond;
constexpr int kTerminated = 9;

class LeaseTest : public ::testing::Test {
 protected:
  void StartLauncher(int64_t lifetime_us_max = 0, std::vector<LaunchProfile> profiles = {}) {
    Do(LauncherStarted{.launcher = "slurm",
                       .allocation_count_max = 2,
                       .node_count_min = 1,
                       .node_count_max = 3,
                       .is_per_submission = true,
                       .lifetime_us_max = lifetime_us_max,
                       .profiles = std::move(profiles)});
  }
  absl::StatusOr<Reply> SubmitTo(const std::string& fleet, int32_t minutes_per_run = 0,
                                 bool allow_preemptible = false, int32_t node_count = 2) {
    SubmissionSpec spec = SomeSpec();
    spec.fleet = fleet;
    spec.minutes_per_run = minutes_per_run;
    spec.allow_preemptible = allow_preemptible;
    spec.node_count = node_count;
    return world_.Do(core::testing::Creation(spec, absl::StrCat("of profile ", ++submit_count_)));
  }
  void Do(CommandBody body) { ASSERT_THAT(world_.Do(std::move(body), "coordinator"), IsOk()); }
  void Report(int64_t id, LaunchReported report) {
    report.allocation = AllocationId{id};
    Do(std::move(report));
  }
  void Grant(int64_t id, std::vector<std::string> hosts = {"n0", "n1"}, int64_t deadline_us = 0) {
    LaunchReported report{.outcome = Launch::kGranted, .deadline_us = deadline_us, .hosts = hosts};
    for (size_t i = 0; i < hosts.size(); ++i)
      report.workers.push_back(WorkerName(id, i));
    Report(id, std::move(report));
  }
  void Call(int64_t id, size_t count = 2) {
    for (size_t i = 0; i < count; ++i) {
      const std::string name = WorkerName(id, i);
      world_.labels[name][std::string(kAllocationLabel)] = AllocationId{id}.ToString();
      ASSERT_THAT(world_.Sync(name), IsOk());
    }
  }
  static std::string WorkerName(int64_t id, size_t i) { return absl::StrCat("a", id, "-", i); }
  SubmissionId Submit(int32_t node_count, int32_t run_count = 1, int32_t replacement_count = 0) {
    SubmissionSpec spec = SomeSpec();
    spec.node_count = node_count;
    spec.run_count = run_count;
    spec.replacement_count_max = replacement_count;
    return world_.Submit(spec);
  }
  // The run trains on both nodes of the allocation.
  void Train(int64_t id, RunId run) {
    Grant(id);
    Call(id);
    for (size_t i = 0; i < 2; ++i)
      world_.Executing(WorkerName(id, i), run);
  }
  const Allocation& allocation(int64_t id) {
    return world_.state().allocations.at(AllocationId{id});
  }
  Explanation Why(SubmissionId id) {
    return std::get<Explanation>(*world_.Do(ExplainSubmission{id}));
  }

  World world_;
  int submit_count_ = 0;
};

TEST_F(LeaseTest, EachSubmissionGetsNodesOfItsOwnForAsLongAsItsRunsMayNeed) {
  StartLauncher();
  const SubmissionId first = Submit(2, 3);
  const SubmissionId second = Submit(1);
  const SubmissionId third = Submit(1);

  ASSERT_EQ(world_.state().allocations.size(), 2u) << "as many as the launcher gives";
  EXPECT_EQ(allocation(1).spec.submission, first);
  EXPECT_EQ(allocation(1).spec.node_count, 2);
  // 10 min, and of each of 3 runs 1.5 times 30 min and 3 more.
  EXPECT_EQ(allocation(1).spec.lifetime_us, (10 + 3 * 48) * kMinute);
  EXPECT_EQ(allocation(2).spec.submission, second);
  EXPECT_EQ(allocation(2).spec.node_count, 1);
  Grant(2, {"n2"});
  Call(2, 1);
  EXPECT_EQ(world_.run(RunId{4}).allocation, AllocationId{2});
  EXPECT_EQ(world_.run(RunId{5}).state, RunState::kQueued) << "nodes of another";
  EXPECT_EQ(ToString(Why(third).reason), "LABELS");
  Report(1, {.outcome = Launch::kEnded, .reason = "Slurm: CANCELLED"});
  EXPECT_EQ(allocation(3).spec.submission, first) << "it is asked for again";
}

TEST_F(LeaseTest, WhyQuotesTheBatchSystem) {
  StartLauncher();
  const SubmissionId id = Submit(2);
  LaunchReported pending{.outcome = Launch::kPending,
                         .job = "4711",
                         .waiting = {.words = "Slurm job 4711 (assay-a1): \"Resources\"",
                                     .expected_start_us = core::testing::kStart + 20 * kMinute}};
  Report(1, pending);
  world_.Wait(12 * kMinute);
  EXPECT_EQ(allocation(1).job, "4711");
  EXPECT_EQ(ToString(Why(id).reason), "ALLOCATION_QUEUED");
  EXPECT_EQ(
      Why(id).explanation,
      "waiting 12 min for Slurm job 4711 (assay-a1): \"Resources\", expected start 22:33 UTC");

  pending.waiting.silence = "Slurm has not answered";
  pending.waiting.silent_since_us = core::testing::kStart + 3 * kMinute;
  Report(1, pending);
  EXPECT_THAT(Why(id).explanation, HasSubstr("; Slurm has not answered for 9 min"));
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(LeaseTest, ANodeThatFailsItsPreflightIsExcludedFromTheNextAllocation) {
  Policy policy;
  policy.preflight.checks = {{.check = "memory", .policy = CheckPolicy::kGate}};
  World world(policy);
  const auto send = [&world](CommandBody body) {
    ASSERT_THAT(world.Do(std::move(body), "coordinator"), IsOk());
  };
  send(LauncherStarted{.launcher = "slurm",
                       .allocation_count_max = 2,
                       .node_count_min = 1,
                       .node_count_max = 3,
                       .is_per_submission = true});
  SubmissionSpec spec = SomeSpec();
  spec.node_count = 2;
  const SubmissionId id = world.Submit(spec);
  send(LaunchReported{.allocation = AllocationId{1},
                      .outcome = Launch::kGranted,
                      .workers = {"a1-0", "a1-1"},
                      .hosts = {"n0", "n1"}});
  for (int i = 0; i < 2; ++i) {
    const std::string name = WorkerName(1, static_cast<size_t>(i));
    world.labels[name] = {{std::string(kAllocationLabel), "a-1"}, {"node", absl::StrCat("n", i)}};
    ASSERT_THAT(world.Sync(name), IsOk());
  }
  const auto answer = [&world](const std::string& name, const std::string& problem) {
    const WorkerReport report{.preflight = {.number = world.worker(name).preflight->number,
                                            .is_done = true,
                                            .checks = {{.check = "memory", .problem = problem}}}};
    ASSERT_THAT(world.Sync(name, report), IsOk());
  };
  answer("a1-0", "");
  answer("a1-1", "is on fire");
  EXPECT_EQ(world.run(RunId{1}).state, RunState::kQueued);
  const Allocation& first = world.state().allocations.at(AllocationId{1});
  EXPECT_EQ(first.state, AllocationState::kReleasing);
  EXPECT_EQ(first.state_reason, "pre-flight of node n1: memory is on fire");
  send(LaunchReported{.allocation = AllocationId{1}, .outcome = Launch::kEnded});
  const Allocation& second = world.state().allocations.at(AllocationId{2});
  EXPECT_EQ(second.spec.submission, id);
  EXPECT_THAT(second.spec.excluded_hosts, ElementsAre("n1"));
  EXPECT_EQ(world.Fold(), world.state());
}

TEST_F(LeaseTest, AJobThatNobodyWaitsForIsGivenBack) {
  StartLauncher();
  Report(7, {.outcome = Launch::kPending, .job = "4711"});
  EXPECT_THAT(world_.outcome().effects, ElementsAre(Effect(ReleaseNodes{AllocationId{7}})));
}

TEST_F(LeaseTest, ThreeThatNeverServedAreEnough) {
  StartLauncher();
  const SubmissionId id = Submit(2);
  for (int64_t n = 1; n <= 3; ++n) {
    Grant(n);
    Call(n, 1);
    world_.Wait(5 * kMinute);
    EXPECT_EQ(allocation(n).state, AllocationState::kReleasing);
    EXPECT_THAT(allocation(n).state_reason, HasSubstr("(n1)"));
    Report(n, {.outcome = Launch::kEnded});
  }
  EXPECT_THAT(world_.state().allocations, IsEmpty());
  EXPECT_EQ(ToString(Why(id).reason), "ALLOCATION_REFUSED");
  EXPECT_THAT(Why(id).explanation, HasSubstr("did not call within 5 min: a3-1 (n1)"));
  EXPECT_THAT(Why(id).remedy, HasSubstr("assay allocation request --entry e-1 --nodes 2"));
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(LeaseTest, ARunStartsOnlyIfItMayEndBeforeTheNodesGo) {
  StartLauncher(70 * kMinute);
  Submit(2, 2);
  EXPECT_EQ(allocation(1).spec.lifetime_us, 70 * kMinute) << "the cap";
  Grant(1);
  Call(1);
  for (size_t i = 0; i < 2; ++i)
    world_.Executing(WorkerName(1, i), RunId{1});
  Grant(1, {"n0", "n1"}, core::testing::kStart + 2 * kMinute);  // the site has cut it short
  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kRunning);
  world_.Succeed(RunId{1});
  EXPECT_EQ(world_.run(RunId{2}).state, RunState::kQueued);
  EXPECT_EQ(allocation(1).state, AllocationState::kReleasing);
  EXPECT_THAT(allocation(1).state_reason, StartsWith("too little time is left"));
  EXPECT_EQ(world_.state().allocations.size(), 1u) << "the nodes are to be given back first";
}

TEST_F(LeaseTest, TheNextAllocationOfASetAsksForItsNodesAndAfterSixHoursForAny) {
  StartLauncher();
  Submit(2, 1, 2);
  for (size_t i = 0; i < 2; ++i)
    world_.labels[WorkerName(1, i)] = {{std::string(kNodeLabel), absl::StrCat("n", i)}};
  Train(1, RunId{1});
  Report(1, {.outcome = Launch::kEnded, .reason = "Slurm: TIMEOUT"});
  EXPECT_THAT(allocation(2).spec.wanted_hosts, ElementsAre("n0", "n1"));
  world_.Wait(6 * 60 * kMinute);
  EXPECT_EQ(allocation(2).state_reason, "the nodes of its set have not come within 6 h");
  Report(2, {.outcome = Launch::kEnded});
  EXPECT_THAT(allocation(3).spec.wanted_hosts, IsEmpty());
}

TEST_F(LeaseTest, ARunThatFitsNowhereIsNotAskedFor) {
  const SubmissionId id = Submit(2);  // before anybody knew what the launcher gives
  StartLauncher(50 * kMinute);
  EXPECT_THAT(world_.state().allocations, IsEmpty());
  EXPECT_EQ(ToString(Why(id).reason), "ALLOCATION_REFUSED");
  EXPECT_THAT(Why(id).explanation, HasSubstr("a run may take 48 min"));
}

TEST_F(LeaseTest, AnEntryChoosesAmongTheOperatorsProfiles) {
  StartLauncher(0, {{.name = "gpu", .node_count_max = 2, .lifetime_us_max = 100 * kMinute},
                    {.name = "spare", .node_count_max = 8, .is_preemptible = true}});
  ASSERT_THAT(SubmitTo("gpu", 40), IsOk());
  EXPECT_EQ(allocation(1).spec.profile, "gpu");
  EXPECT_EQ(allocation(1).spec.organization, SomeSpec().organization);
  EXPECT_EQ(allocation(1).spec.lifetime_us, (10 + 60 + 3) * kMinute) << "as the submitter says";
  ASSERT_THAT(SubmitTo("spare", 0, /*allow_preemptible=*/true), IsOk());
  EXPECT_EQ(allocation(2).spec.profile, "spare");

  StartLauncher(0, {});
  Report(1, {.outcome = Launch::kEnded, .reason = "Slurm: CANCELLED"});
  EXPECT_EQ(Why(SubmissionId{1}).explanation, "launcher \"slurm\" has no profile gpu any more");
}

TEST_F(LeaseTest, WhatCanNeverBeGivenIsRefused) {
  StartLauncher(100 * kMinute,
                {{.name = "gpu", .node_count_max = 4, .lifetime_us_max = 60 * kMinute},
                 {.name = "spare", .node_count_max = 8, .is_preemptible = true}});
  const auto refused = [](const std::string& words) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words));
  };
  EXPECT_THAT(SubmitTo("gpus"), refused("R-FLT-001"));
  EXPECT_THAT(SubmitTo("gpus"), refused("choose one of gpu, spare"));
  EXPECT_THAT(SubmitTo("gpu", 0, false, 5), refused("R-FLT-002"));
  EXPECT_THAT(SubmitTo("", 0, false, 4), refused("ask for at most 3 nodes"));
  EXPECT_THAT(SubmitTo("gpu", 40), refused("R-FLT-003"));
  EXPECT_THAT(SubmitTo("", 60), refused("93 min for a run and 10 to spare, of at most 100 min"));
  EXPECT_THAT(SubmitTo("spare"), refused("R-FLT-004"));

  // What would be asked for, before anything is.
  SubmissionSpec spec = SomeSpec();
  spec.fleet = "gpu";
  spec.run_count = 5;
  spec.minutes_per_run = 10;
  const auto plan = std::get<PlacementReply>(*world_.Do(PlanPlacement{spec}));
  ASSERT_TRUE(plan.lease.has_value());
  EXPECT_EQ(plan.lease->profile, "gpu");
  EXPECT_EQ(plan.lease->lifetime_us, 60 * kMinute) << "the cap; 100 would be needed";
  spec.minutes_per_run = 40;
  EXPECT_THAT(std::get<PlacementReply>(*world_.Do(PlanPlacement{spec})).findings, SizeIs(1));
}

TEST_F(LeaseTest, AProfileThatNeverServesIsPaused) {
  StartLauncher(0, {{.name = "gpu", .node_count_max = 2}});
  ASSERT_THAT(SubmitTo("gpu"), IsOk());
  ASSERT_THAT(SubmitTo("gpu"), IsOk());
  for (int64_t n = 1; n <= 3; ++n)
    Report(n, {.outcome = Launch::kEnded, .reason = "Slurm: BOOT_FAIL"});
  // The second entry has not had its three, and waits all the same.
  EXPECT_EQ(world_.state().submissions.at(SubmissionId{2}).lease_failure_count, 1);
  ASSERT_EQ(world_.state().allocations.size(), 1u) << "what was asked for before";
  Report(4, {.outcome = Launch::kEnded, .reason = "Slurm: BOOT_FAIL"});
  EXPECT_THAT(world_.state().allocations, IsEmpty());
  EXPECT_THAT(Why(SubmissionId{2}).explanation,
              HasSubstr("profile gpu, is paused for an hour: its last 4 allocations ended before "
                        "any run, a-4: Slurm: BOOT_FAIL"));
  ASSERT_TRUE(world_.core().NextWakeupUs().has_value());
  world_.Wait(60 * kMinute);
  EXPECT_EQ(world_.state().allocations.size(), 1u) << "one more is tried";
}

TEST_F(LeaseTest, ANodeWhoseAgentDidNotComeIsExcluded) {
  StartLauncher();
  Submit(2);
  Grant(1);
  Call(1, 1);
  world_.Wait(5 * kMinute);
  Report(1, {.outcome = Launch::kEnded});
  EXPECT_THAT(allocation(2).spec.excluded_hosts, ElementsAre("n1"));
  Grant(2, {"n0", "n2"});
  Call(2, 1);
  world_.Wait(5 * kMinute);
  Report(2, {.outcome = Launch::kEnded});
  EXPECT_THAT(allocation(3).spec.excluded_hosts, ElementsAre("n1", "n2"));
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(LeaseTest, AStoppedRunFailsWithTheBatchSystemsWord) {
  StartLauncher();
  Submit(2, 1, 1);
  Train(1, RunId{1});
  world_.Finished("a1-0", RunId{1}, kTerminated);
  EXPECT_THAT(world_.outcome().effects, ElementsAre(Effect(AcquireNodes{allocation(1)})))
      << "the launcher is asked what has happened";
  world_.Finished("a1-1", RunId{1}, kTerminated);
  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kRunning);

  Report(1, {.outcome = Launch::kEnded, .reason = "Slurm: CANCELLED"});

  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kFailed);
  EXPECT_EQ(world_.run(RunId{1}).state_reason, "allocation a-1 has ended: Slurm: CANCELLED");
  EXPECT_EQ(world_.run(RunId{2}).state, RunState::kQueued) << "it is replaced";
}

TEST_F(LeaseTest, AfterAStartADeadlineThatHasPassedWaitsForTheLaunchersWord) {
  StartLauncher();
  Submit(2, 1, 1);
  Report(1, {.outcome = Launch::kPending, .job = "4711"});
  Train(1, RunId{1});
  const int64_t late_us = allocation(1).deadline_us + kMinute;
  Core restarted(Policy{}, world_.state(), late_us);
  const auto handle = [&](CommandBody body) {
    std::vector<Command> commands;
    commands.push_back({"coordinator", std::move(body)});
    static_cast<void>(restarted.Handle(commands, late_us));
  };
  handle(Tick{});
  EXPECT_EQ(restarted.state().runs.at(RunId{1}).state, RunState::kRunning)
      << "what it has done may still be delivered";
  handle(LaunchReported{
      .allocation = AllocationId{1}, .outcome = Launch::kEnded, .reason = "Slurm: TIMEOUT"});
  EXPECT_THAT(restarted.state().runs.at(RunId{1}).state_reason, HasSubstr("Slurm: TIMEOUT"));
}

TEST_F(LeaseTest, AStopThatIsNotTheBatchSystemsFailsTheRunWithTheAgentsWord) {
  StartLauncher();
  Submit(2, 1, 1);
  Train(1, RunId{1});
  world_.Finished("a1-0", RunId{1}, kTerminated);
  ASSERT_EQ(world_.run(RunId{1}).state, RunState::kRunning);
  Grant(1);
  world_.Wait(kDoubtMinUs);
  ASSERT_EQ(world_.run(RunId{1}).state, RunState::kRunning) << "it is asked again";
  Grant(1);
  EXPECT_THAT(world_.run(RunId{1}).state_reason, HasSubstr("stopped on request"));
}

TEST_F(LeaseTest, APreemptedJobRunsOnUntilItsAgentsHaveLeft) {
  StartLauncher();
  Submit(2, 1, 1);
  Train(1, RunId{1});
  for (const char* worker : {"a1-0", "a1-1"})
    world_.Finished(worker, RunId{1}, kTerminated);
  Grant(1, {"n0", "n1"}, core::testing::kStart);  // the end of its grace, less a margin
  world_.Wait(kDoubtMinUs);
  world_.is_leaving = true;
  ASSERT_THAT(world_.Sync("a1-1"), IsOk());
  Grant(1, {"n0", "n1"}, core::testing::kStart);
  ASSERT_EQ(world_.run(RunId{1}).state, RunState::kRunning) << "for Slurm the job runs still";
  world_.Wait(kAskAgainUs);
  EXPECT_THAT(world_.outcome().effects, SizeIs(1)) << "it is asked again";
  Report(1, {.outcome = Launch::kEnded, .reason = "Slurm: PREEMPTED"});
  EXPECT_THAT(world_.run(RunId{1}).state_reason, HasSubstr("Slurm: PREEMPTED"));
}

TEST_F(LeaseTest, WithoutAnyWordTheAgentsCountsAfterTwelveSeconds) {
  StartLauncher();
  Submit(2, 1, 1);
  Train(1, RunId{1});
  world_.Finished("a1-0", RunId{1}, kTerminated);
  ASSERT_TRUE(world_.core().NextWakeupUs().has_value());
  world_.Wait(kDoubtUs);
  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kFailed);
}

TEST_F(LeaseTest, ALostNodeIsNamedAndTheRestGivenBack) {
  StartLauncher();
  Submit(2, 1, 1);
  Train(1, RunId{1});
  Report(1, {.outcome = Launch::kGranted,
             .workers = {"a1-0"},
             .reason = "Slurm: NODE_FAIL n1",
             .hosts = {"n0"}});
  EXPECT_THAT(world_.run(RunId{1}).state_reason, HasSubstr("Slurm: NODE_FAIL n1"));
  world_.Finished("a1-0", RunId{1}, kTerminated);
  world_.Wait(kSecond);
  EXPECT_EQ(allocation(1).state, AllocationState::kReleasing);
  EXPECT_EQ(allocation(1).state_reason, "only 1 of 2 nodes are left");
}

TEST_F(LeaseTest, NodesThatASubmitterBringsServeHisEntryAloneAndLeaveWithIt) {
  StartLauncher();
  const SubmissionId mine = Submit(2);
  const SubmissionId other = Submit(1);
  const JoinAllocation join{.submission = mine,
                            .job = "4711",
                            .hosts = {"n0", "n1"},
                            .token_sha256s = {std::string(64, 'a'), std::string(64, 'b')},
                            .token_expires_at_us = core::testing::kStart + 600 * kSecond,
                            .deadline_us = core::testing::kStart + 3600 * kSecond};
  JoinAllocation few = join;
  few.hosts.pop_back();
  few.token_sha256s.pop_back();
  EXPECT_THAT(world_.Do(few), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(world_.Do(join), IsOk());
  EXPECT_EQ(allocation(1).state, AllocationState::kReleasing) << "what was asked of the launcher";
  EXPECT_EQ(allocation(3).state, AllocationState::kGranted);
  EXPECT_EQ(allocation(3).job, "4711");
  // The answer was lost.
  ASSERT_THAT(world_.Do(join), IsOk());
  EXPECT_FALSE(world_.state().allocations.contains(AllocationId{3})) << "it has ended";

  for (const char* worker : {"own-a4-0", "own-a4-1"})
    ASSERT_THAT(world_.Sync(worker), IsOk());
  EXPECT_EQ(allocation(4).state, AllocationState::kActive);
  EXPECT_EQ(world_.run(RunId{1}).allocation, AllocationId{4});
  EXPECT_TRUE(world_.run(RunId{1}).has_submitters_nodes);
  EXPECT_EQ(world_.run(RunId{2}).state, RunState::kQueued) << "nodes of another";
  EXPECT_THAT(world_.Do(join), StatusIs(absl::StatusCode::kAlreadyExists));
  // The launcher is started again, and knows nothing of them.
  StartLauncher();
  EXPECT_EQ(allocation(4).state, AllocationState::kActive);

  ASSERT_THAT(world_.Do(CancelSubmission{.submission = mine}), IsOk());
  for (const char* worker : {"own-a4-0", "own-a4-1"})
    world_.Sync(worker).IgnoreError();
  world_.Wait(kSecond);
  EXPECT_THAT(world_.Sync("own-a4-0"), StatusIs(absl::StatusCode::kFailedPrecondition))
      << "nor may it serve others from now on";
  EXPECT_EQ(world_.run(RunId{2}).state, RunState::kQueued);
  EXPECT_EQ(ToString(Why(other).reason), "ALLOCATION_QUEUED");
  EXPECT_EQ(world_.Fold(), world_.state());
}

}  // namespace
}  // namespace assay::core
