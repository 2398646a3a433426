// Nodes of a batch system's job that have proven to be such: which of them get a certificate.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
using Launch = LaunchReported::Outcome;

// Allocation a-1 is job 4711, which runs on n0 and n1.
class NodeEnrolmentTest : public ::testing::Test {
 protected:
  NodeEnrolmentTest() {
    Do(LauncherStarted{.launcher = "slurm",
                       .allocation_count_max = 2,
                       .node_count_min = 1,
                       .node_count_max = 3,
                       .is_per_submission = true});
    SubmissionSpec spec = SomeSpec();
    spec.node_count = 2;
    EXPECT_THAT(world_.Do(core::testing::Creation(spec, "one")), IsOk());
    world_.Wait(kSecond);
  }
  void Do(CommandBody body) { ASSERT_THAT(world_.Do(std::move(body), "coordinator"), IsOk()); }
  void Queue() {
    Do(LaunchReported{.allocation = kLease, .outcome = Launch::kPending, .job = "4711"});
  }
  void Run() {
    Queue();
    Do(LaunchReported{.allocation = kLease,
                      .outcome = Launch::kGranted,
                      .workers = {"a1-0", "a1-1"},
                      .hosts = {"n0", "n1"}});
  }
  absl::Status Enrol(const std::string& node, const std::string& worker,
                     const std::string& job = "4711", AllocationId lease = kLease) {
    return world_
        .Do(EnrolNode{.allocation = lease, .job = job, .node = node, .worker = worker}, worker)
        .status();
  }
  static auto Refused(const char* words) {
    return StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(words));
  }

  static constexpr AllocationId kLease{1};
  World world_;
};

TEST_F(NodeEnrolmentTest, EachNodeOfARunningJobEnrolsOnce) {
  Run();
  EXPECT_THAT(Enrol("n0", "a1-0"), IsOk());
  EXPECT_THAT(Enrol("n0", "a1-0"), Refused("node n0 has enrolled in job 4711 before"));
  EXPECT_THAT(Enrol("n1", "a1-1"), IsOk());
  EXPECT_THAT(world_.state().allocations.at(kLease).enrolled_hosts, ElementsAre("n0", "n1"));
  EXPECT_EQ(world_.Fold(), world_.state()) << "a coordinator that starts anew knows it, too";
}

TEST_F(NodeEnrolmentTest, AJobThatIsNotKnownToRunIsAskedAboutAgain) {
  const auto is_later = StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not said yet"));
  EXPECT_THAT(Enrol("n0", "a1-0"), is_later);
  Queue();
  EXPECT_THAT(Enrol("n0", "a1-0"), is_later);
  Run();
  EXPECT_THAT(Enrol("n0", "a1-0"), IsOk());
}

TEST_F(NodeEnrolmentTest, AJobThatIsNotThisCoordinatorsIsRefused) {
  Run();
  EXPECT_THAT(Enrol("n0", "a1-0", "4712"), Refused("job 4712 is not that of a-1, which is 4711"));
  EXPECT_THAT(Enrol("n0", "a7-0", "4711", AllocationId{7}), Refused("allocation a-7 is none"));
}

TEST_F(NodeEnrolmentTest, ANodeThatIsNotOfTheJobIsRefused) {
  Run();
  EXPECT_THAT(Enrol("n2", "a1-0"), Refused("node n2 is none of job 4711"));
  EXPECT_THAT(Enrol("n1", "a1-0"), Refused("node n1 of a-1 is a1-1, not a1-0"));
}

TEST_F(NodeEnrolmentTest, AJobThatHasEndedIsRefused) {
  Run();
  Do(ReleaseAllocation{.allocation = kLease});
  EXPECT_THAT(Enrol("n0", "a1-0"), Refused("does not run any more: the allocation is RELEASING"));
  Do(LaunchReported{.allocation = kLease, .outcome = Launch::kEnded, .reason = "Slurm: CANCELLED"});
  EXPECT_THAT(Enrol("n0", "a1-0"), Refused("has ended"));
}

TEST_F(NodeEnrolmentTest, ASubmittersJobIsNotTheCoordinators) {
  ASSERT_THAT(
      world_.Do(JoinAllocation{.submission = SubmissionId{1},
                               .job = "4711",
                               .hosts = {"n0", "n1"},
                               .token_sha256s = {std::string(64, 'a'), std::string(64, 'b')},
                               .token_expires_at_us = core::testing::kStart + 600 * kSecond}),
      IsOk());
  EXPECT_THAT(Enrol("n0", "own-a2-0", "4711", AllocationId{2}), Refused("is a submitter's"));
}

}  // namespace
}  // namespace assay::core
