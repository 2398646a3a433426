// Leases of nodes: asked for, granted, used, lost, given back.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/allocate.h"
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
using Launch = LaunchReported::Outcome;

constexpr AllocationId kFirst{1};

// A world whose launcher gives one allocation of two nodes, local-0 and local-1.
class AllocationTest : public ::testing::Test {
 protected:
  void StartLauncher(bool is_wanted_at_once = true) {
    ASSERT_THAT(world_.Do(LauncherStarted{.launcher = "local",
                                          .allocation_count_max = 1,
                                          .node_count_min = 2,
                                          .node_count_max = 2,
                                          .is_wanted_at_once = is_wanted_at_once},
                          "coordinator"),
                IsOk());
  }
  void Report(LaunchReported report) {
    if (report.allocation.is_none()) report.allocation = kFirst;
    ASSERT_THAT(world_.Do(std::move(report), "coordinator"), IsOk());
  }
  void Grant(AllocationId id = kFirst) {
    Report({.allocation = id, .outcome = Launch::kGranted, .workers = {"local-0", "local-1"}});
  }
  void Call(AllocationId id = kFirst) {
    for (const char* name : {"local-0", "local-1"}) {
      world_.labels[name] = {{std::string(kAllocationLabel), id.ToString()}};
      ASSERT_THAT(world_.Sync(name), IsOk());
    }
  }
  // An allocation with both workers there.
  void Begin() {
    StartLauncher();
    Grant();
    Call();
    ASSERT_EQ(allocation().state, AllocationState::kActive);
  }
  SubmissionId SubmitGang(int replacement_count_max = 0) {
    SubmissionSpec spec = SomeSpec();
    spec.node_count = 2;
    spec.replacement_count_max = replacement_count_max;
    return world_.Submit(spec);
  }
  const Allocation& allocation(AllocationId id = kFirst) {
    return world_.state().allocations.at(id);
  }
  Explanation Why(SubmissionId id) {
    return std::get<Explanation>(*world_.Do(ExplainSubmission{id}));
  }
  const std::vector<Effect>& effects() { return world_.outcome().effects; }

  World world_;
};

TEST_F(AllocationTest, WorkersThatComeByThemselvesShareOne) {
  ASSERT_THAT(world_.Sync("w0"), IsOk());
  ASSERT_THAT(world_.Sync("w1"), IsOk());

  ASSERT_EQ(world_.state().allocations.size(), 1u);
  EXPECT_EQ(allocation().spec.launcher, kAttachLauncher);
  EXPECT_EQ(allocation().state, AllocationState::kActive);
  EXPECT_EQ(world_.worker("w1").allocation, kFirst);
  SubmitGang();
  EXPECT_EQ(world_.run(RunId{1}).allocation, kFirst);
  EXPECT_THAT(world_.Do(ReleaseAllocation{kFirst, ""}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("node drain")));
  EXPECT_THAT(world_.Do(RequestAllocation{}), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(AllocationTest, IsAskedForAtOnceAndGrantedWhenTheNodesAreThere) {
  StartLauncher();
  EXPECT_EQ(allocation().state, AllocationState::kRequested);
  EXPECT_EQ(allocation().requested_by, kCoordinator);
  ASSERT_THAT(effects(), ElementsAre(Effect(AcquireNodes{allocation()})));
  world_.Wait(kSecond);
  EXPECT_THAT(effects(), IsEmpty()) << "it is asked once";

  // An agent may call before the grant is known; it does not count as one that came by itself.
  world_.labels["local-0"] = {{std::string(kAllocationLabel), "a-1"}};
  ASSERT_THAT(world_.Sync("local-0"), IsOk());
  EXPECT_TRUE(world_.worker("local-0").allocation.is_none());
  Grant();
  EXPECT_EQ(world_.worker("local-0").allocation, kFirst);
  EXPECT_EQ(allocation().state, AllocationState::kGranted);
  const SubmissionId id = SubmitGang();
  EXPECT_EQ(ToString(Why(id).reason), "ALLOCATION_QUEUED");
  EXPECT_THAT(Why(id).explanation, HasSubstr("has not called yet: local-1"));
  Call();
  EXPECT_EQ(allocation().state, AllocationState::kActive);
  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kAssigned);
}

TEST_F(AllocationTest, AGangComesFromOne) {
  StartLauncher();
  Report({.outcome = Launch::kGranted, .workers = {"local-0"}});
  ASSERT_THAT(world_.Sync("local-0"), IsOk());
  ASSERT_THAT(world_.Sync("w0"), IsOk());

  const SubmissionId id = SubmitGang();

  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kQueued);
  EXPECT_EQ(ToString(Why(id).reason), "LABELS");
  EXPECT_THAT(Why(id).explanation, HasSubstr("a run's nodes come from one"));
  const auto plan = std::get<PlacementReply>(*world_.Do(PlanPlacement{SomeSpec()}));
  EXPECT_EQ(plan.worker_count_matching, 1) << "in the best allocation";
  ASSERT_THAT(world_.Sync("w1"), IsOk());
  EXPECT_EQ(world_.run(RunId{1}).allocation, world_.worker("w0").allocation);
}

TEST_F(AllocationTest, IsReleasedWhenItsRunsHaveEnded) {
  Begin();
  SubmitGang();
  const SubmissionId next = SubmitGang();

  ASSERT_THAT(world_.Do(ReleaseAllocation{kFirst, "maintenance"}), IsOk());

  EXPECT_EQ(allocation().state, AllocationState::kReleasing);
  EXPECT_THAT(effects(), IsEmpty()) << "a run goes on";
  world_.Succeed(RunId{1});
  EXPECT_EQ(world_.run(RunId{2}).state, RunState::kQueued) << "it gets no more";
  EXPECT_THAT(effects(), ElementsAre(Effect(ReleaseNodes{kFirst})));
  Report({.outcome = Launch::kEnded});
  const auto& ended = std::get<AllocationEnded>(world_.outcome().events[2].event);
  EXPECT_EQ(ended.reason, "maintenance");

  EXPECT_FALSE(world_.state().allocations.contains(kFirst)) << "out of memory";
  EXPECT_FALSE(world_.state().workers.contains("local-0")) << "out of memory";
  EXPECT_EQ(world_.Fold(), world_.state());
  EXPECT_THAT(world_.Do(ReleaseAllocation{kFirst, ""}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("ended already")));
  // The scheduler asks for the nodes that the queued run needs.
  EXPECT_EQ(allocation(AllocationId{2}).requested_by, kCoordinator);
  EXPECT_THAT(allocation(AllocationId{2}).state_reason, HasSubstr("run r-2 waits for 2 nodes"));
  EXPECT_EQ(ToString(Why(next).reason), "ALLOCATION_QUEUED");
  Grant(AllocationId{2});
  Call(AllocationId{2});
  EXPECT_EQ(world_.run(RunId{2}).allocation, AllocationId{2});
}

TEST_F(AllocationTest, AFailedLaunchIsTriedAgainAfterAPauseThatDoubles) {
  StartLauncher();
  const SubmissionId id = SubmitGang();
  Report({.outcome = Launch::kFailed, .reason = "no such program"});

  EXPECT_THAT(effects(), IsEmpty());
  EXPECT_EQ(ToString(Why(id).reason), "ALLOCATION_REFUSED");
  EXPECT_THAT(Why(id).explanation, HasSubstr("in 1 try, the last: no such program; it is asked "
                                             "for again in 5 s"));
  world_.Wait(4 * kSecond);
  EXPECT_THAT(effects(), IsEmpty());
  world_.Wait(kSecond);
  EXPECT_THAT(effects(), ElementsAre(Effect(AcquireNodes{allocation()})));
  Report({.outcome = Launch::kFailed, .reason = "no such program"});
  EXPECT_EQ(allocation().retry_at_us, world_.now_us() + 10 * kSecond);

  // A crash loses neither the failures nor the time of the next try.
  Core next(Policy{}, world_.state(), world_.now_us());
  const LauncherStarted started{
      .launcher = "local", .allocation_count_max = 1, .node_count_max = 2};
  EXPECT_THAT(next.Handle({{"coordinator", started}}, world_.now_us() + 9 * kSecond).effects,
              IsEmpty());
  EXPECT_THAT(next.Handle({}, world_.now_us() + 10 * kSecond).effects,
              ElementsAre(Effect(AcquireNodes{allocation()})));
  EXPECT_EQ(RetryPauseUs(7), 300 * kSecond) << "at most five minutes";

  Grant();
  EXPECT_EQ(allocation().failure_count, 0);
}

TEST_F(AllocationTest, AGrantThatComesTooLateGoesBack) {
  StartLauncher();
  ASSERT_THAT(world_.Do(ReleaseAllocation{kFirst, ""}, "olga"), IsOk());
  EXPECT_EQ(allocation().state_reason, "released by olga");
  EXPECT_THAT(effects(), ElementsAre(Effect(ReleaseNodes{kFirst})));
  Grant();
  EXPECT_THAT(world_.outcome().events, IsEmpty()) << "its release is under way";
  Report({.outcome = Launch::kEnded});

  Grant();

  EXPECT_THAT(world_.outcome().events, IsEmpty());
  EXPECT_THAT(effects(), ElementsAre(Effect(ReleaseNodes{kFirst})));
}

TEST_F(AllocationTest, WhenItIsLostSoIsWhatItExecuted) {
  Begin();
  const SubmissionId id = SubmitGang(/*replacement_count_max=*/1);
  world_.Executing("local-0", RunId{1});
  world_.Executing("local-1", RunId{1});

  Report({.outcome = Launch::kEnded, .reason = "NODE_FAIL"});

  EXPECT_EQ(world_.run(RunId{1}).state, RunState::kFailed);
  EXPECT_EQ(world_.run(RunId{1}).state_reason, "allocation a-1 has ended: NODE_FAIL");
  EXPECT_EQ(world_.run(RunId{2}).state, RunState::kQueued) << "replaced at once";
  EXPECT_TRUE(world_.state().allocations.contains(AllocationId{2})) << "asked for again";
  EXPECT_EQ(ToString(Why(id).reason), "ALLOCATION_QUEUED");
  // Its workers come too late; but their names may be granted again.
  EXPECT_THAT(world_.Sync("local-0"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("a-1")));
  Grant(AllocationId{2});
  EXPECT_THAT(world_.Sync("local-0"), IsOk());
  EXPECT_EQ(world_.worker("local-0").allocation, AllocationId{2});
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(AllocationTest, AnEndThatWasBroughtForwardIsToldAsSuch) {
  StartLauncher();
  for (const int64_t minutes : {30, 10})
    Report({.outcome = Launch::kGranted,
            .workers = {"local-0", "local-1"},
            .deadline_us = world_.now_us() + minutes * 60 * kSecond});
  Call();
  SubmitGang();

  world_.Wait(10 * 60 * kSecond);

  EXPECT_EQ(allocation().state_reason,
            "its deadline has come, brought forward by 20 min since the nodes were granted");
}

TEST_F(AllocationTest, ARunIsStoppedAtTheDeadlineAndTheNodesGoWhateverItDoes) {
  StartLauncher();
  const int64_t deadline_us = world_.now_us() + 8 * kSecond;
  Report(
      {.outcome = Launch::kGranted, .workers = {"local-0", "local-1"}, .deadline_us = deadline_us});
  Call();
  SubmitGang();
  EXPECT_EQ(world_.core().NextWakeupUs(), deadline_us);

  world_.Wait(8 * kSecond);

  EXPECT_EQ(world_.run(RunId{1}).state_reason, "allocation a-1: its deadline has come");
  EXPECT_EQ(world_.Executing("local-0", RunId{1}).action, DesiredAction::kStop);
  EXPECT_EQ(allocation().state, AllocationState::kReleasing);
  EXPECT_THAT(effects(), IsEmpty());
  EXPECT_GT(world_.core().NextWakeupUs(), world_.now_us()) << "nobody spins meanwhile";
  world_.Wait(kReleaseGraceUs);
  EXPECT_THAT(effects(), ElementsAre(Effect(ReleaseNodes{kFirst})));
}

TEST_F(AllocationTest, IsHeldAgainAfterARestartAndMayHaveOtherNodes) {
  Begin();
  SubmitGang();
  world_.Executing("local-1", RunId{1});

  StartLauncher();
  EXPECT_THAT(effects(), ElementsAre(Effect(AcquireNodes{allocation()})));
  Grant();
  EXPECT_THAT(world_.outcome().events, IsEmpty()) << "nothing has changed";
  StartLauncher();
  Report({.outcome = Launch::kGranted, .workers = {"local-0"}});

  EXPECT_THAT(allocation().workers, ElementsAre("local-0"));
  EXPECT_EQ(world_.worker("local-1").state, WorkerState::kGone);
  EXPECT_EQ(world_.run(RunId{1}).state_reason, "allocation a-1 lost the node");
}

TEST_F(AllocationTest, WhyTellsOfNodesThatDoNotComeBack) {
  Begin();
  world_.is_leaving = true;  // the coordinator ends, and its agents with it
  Call();
  world_.is_leaving = false;
  StartLauncher();
  Report({.outcome = Launch::kFailed, .reason = "no such program"});

  const SubmissionId id = SubmitGang();

  EXPECT_EQ(ToString(Why(id).reason), "ALLOCATION_REFUSED");
  EXPECT_THAT(Why(id).explanation, HasSubstr("no such program"));
}

TEST_F(AllocationTest, EndsWithItsLauncherOrItsSubmission) {
  Begin();
  ASSERT_THAT(world_.Do(LauncherStarted{.launcher = "attach"}, "coordinator"), IsOk());
  EXPECT_THAT(world_.state().allocations, IsEmpty());
  EXPECT_THAT(world_.Do(RequestAllocation{}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("starts no nodes")));

  StartLauncher(/*is_wanted_at_once=*/false);
  SubmissionSpec spec = SomeSpec();
  spec.worker_labels = {{"rack", "a"}};
  const SubmissionId id = world_.Submit(spec);
  const AllocationId asked{world_.state().last_allocation};
  ASSERT_THAT(world_.Do(ReleaseAllocation{asked, ""}), IsOk());
  Report({.allocation = asked, .outcome = Launch::kEnded});
  ASSERT_THAT(world_.Do(CancelSubmission{id, ""}), IsOk());
  Report({.allocation = AllocationId{asked.number + 1}, .outcome = Launch::kEnded});

  const SubmissionId owner = world_.Submit([] {
    SubmissionSpec large = SomeSpec();
    large.node_count = 3;  // more than the scheduler may ask for
    return large;
  }());
  const auto made = world_.Do(RequestAllocation{.spec = {.submission = owner}});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(std::get<Allocation>(*made).spec.node_count, 2) << "as many as possible";
  ASSERT_THAT(world_.Do(CancelSubmission{owner, ""}), IsOk());
  world_.Wait(kSecond);
  EXPECT_EQ(allocation(std::get<Allocation>(*made).id).state, AllocationState::kReleasing);
}

TEST_F(AllocationTest, AnOperatorAsksForNodesOnceForARequest) {
  StartLauncher(/*is_wanted_at_once=*/false);
  const RequestAllocation wish{.request_id = "r", .spec = {.lifetime_us = 60 * kSecond}};
  ASSERT_THAT(world_.Do(wish), IsOk());
  const auto again = world_.Do(wish);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(std::get<Allocation>(*again).id, kFirst);
  EXPECT_THAT(world_.Do(RequestAllocation{}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("can have no more")));
  Grant();
  EXPECT_EQ(allocation().deadline_us, world_.now_us() + 60 * kSecond);
}

}  // namespace
}  // namespace assay::core
