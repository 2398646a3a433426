// What becomes of a worker, its runs and its tokens when its certificates are revoked.

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/core.h"
#include "server/core/forget.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::World;
using ::testing::HasSubstr;

constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;

// A call of `worker` by a certificate of that generation.
absl::Status CallBy(World* world, const std::string& worker, int64_t generation) {
  Synchronize call{.worker = worker};
  call.description = world->Describe(worker);
  std::vector<Command> commands;
  commands.push_back(Command{worker, std::move(call), generation});
  world->Handle(std::move(commands));
  return world->outcome().replies[0].status();
}

CreateToken EnrolmentToken(const World& world, const std::string& worker, char digit) {
  return {.kind = TokenKind::kEnrol,
          .role = "worker",
          .principal = worker,
          .secret_sha256 = std::string(64, digit),
          .expires_at_us = world.now_us() + 1000 * core::testing::kSecond};
}

TEST(CoreRevocationTest, RefusesCertificatesOfEarlierGenerationsOnly) {
  World world;
  ASSERT_THAT(CallBy(&world, "w0", 0), IsOk());
  ASSERT_THAT(CallBy(&world, "w1", 0), IsOk());

  ASSERT_THAT(world.Do(RevokeWorker{"w0", "stolen"}, "root"), IsOk());

  EXPECT_EQ(world.worker("w0").state, WorkerState::kGone);
  EXPECT_EQ(world.worker("w0").state_reason, "its certificates were revoked: stolen");
  EXPECT_EQ(world.worker("w0").certificate_generation, 1);
  EXPECT_EQ(world.worker("w0").certificates_revoked_at_us, world.now_us());
  EXPECT_THAT(CallBy(&world, "w0", 0),
              StatusIs(kUnauthenticated, HasSubstr("assay admin enrol w0")));
  EXPECT_EQ(world.worker("w0").state, WorkerState::kGone) << "a refused call changes nothing";
  EXPECT_THAT(CallBy(&world, "w1", 0), IsOk()) << "another worker's certificate is as good as ever";

  EXPECT_THAT(CallBy(&world, "w0", 1), IsOk());
  EXPECT_EQ(world.worker("w0").state, WorkerState::kAlive);
  ASSERT_THAT(world.Do(RevokeWorker{"w0", ""}, "root"), IsOk());
  EXPECT_THAT(CallBy(&world, "w0", 1), StatusIs(kUnauthenticated)) << "each call revokes anew";
  EXPECT_EQ(world.Fold(), world.state());
}

TEST(CoreRevocationTest, AForgottenWorkerBeginsAnew) {
  World world;
  ASSERT_THAT(CallBy(&world, "w0", 0), IsOk());
  world.is_leaving = true;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.is_leaving = false;
  world.Wait(kRememberUs);
  world.Wait(2 * 3600 * core::testing::kSecond);
  ASSERT_FALSE(world.state().workers.contains("w0"));
  ASSERT_THAT(world.Do(EnrolmentToken(world, "w0", 'a'), "root"), IsOk());

  ASSERT_THAT(world.Do(RevokeWorker{"w0", "stolen"}, "root"), IsOk());
  ASSERT_THAT(CallBy(&world, "w0", 1), IsOk());

  EXPECT_EQ(world.worker("w0").certificate_generation, 1);
  EXPECT_EQ(world.Fold(), world.state()) << "the log alone says what is there";
}

TEST(CoreRevocationTest, WhatItExecutesFailsAndIsReplacedElsewhere) {
  World world;
  world.SubmitGang(1);

  ASSERT_THAT(world.Do(RevokeWorker{"w0", ""}, "root"), IsOk());

  EXPECT_EQ(world.run(RunId{1}).state, RunState::kFailed);
  EXPECT_EQ(world.run(RunId{1}).state_reason, "the certificate of worker w0 was revoked");
  EXPECT_TRUE(world.worker("w0").run.is_none());
  EXPECT_EQ(world.Executing("w1", RunId{1}).action, DesiredAction::kStop) << "the rest of the gang";
  EXPECT_EQ(world.Finished("w1", RunId{1}, 4).action, DesiredAction::kForget);
  EXPECT_EQ(world.run(RunId{1}).state_reason, "the certificate of worker w0 was revoked");
  ASSERT_THAT(world.Sync("w1"), IsOk());
  ASSERT_THAT(world.Sync("w2"), IsOk());

  EXPECT_EQ(world.run(RunId{2}).state, RunState::kAssigned);
  EXPECT_EQ(world.run(RunId{2}).nodes[0].worker, "w2");
  EXPECT_EQ(world.run(RunId{2}).nodes[1].worker, "w1") << "keeps its place in the set";

  // It enrols again, and its step still runs.
  EXPECT_EQ(world.Executing("w0", RunId{1}).action, DesiredAction::kStop);
  EXPECT_EQ(world.Fold(), world.state());
}

TEST(CoreRevocationTest, APartThatIsFinishedWasReportedInTime) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit();
  world.Executing("w0", RunId{1});
  world.Finished("w0", RunId{1});
  ASSERT_EQ(world.run(RunId{1}).state, RunState::kUploading);

  ASSERT_THAT(world.Do(RevokeWorker{"w0", ""}, "root"), IsOk());

  EXPECT_EQ(world.run(RunId{1}).state, RunState::kUploading);
  EXPECT_TRUE(world.worker("w0").run.is_none());
  RunFacts facts;
  facts.is_compliant = facts.is_converged = true;
  ASSERT_THAT(world.Do(LogChecked{RunId{1}, facts, ""}, "coordinator"), IsOk());
  EXPECT_EQ(world.submission(id).state, SubmissionState::kChecking);
}

TEST(CoreRevocationTest, RefusesLateEvidenceToo) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.Submit();
  world.Executing("w0", RunId{1});
  ASSERT_THAT(world.Do(RevokeWorker{"w0", ""}, "root"), IsOk());

  std::vector<Command> commands;
  commands.push_back(Command{
      "w0", AppendRunEvents{RunId{1}, 1, 0, {{.seq = 1, .text = "x", .line = 1}}, "w0"}, 0});
  commands.push_back(Command{
      "w0", RecordArtifact{RunId{1}, 1, {"result_1.txt", std::string(64, 'a'), 5}, "w0"}, 0});
  world.Handle(std::move(commands));

  EXPECT_THAT(world.outcome().replies[0], StatusIs(kUnauthenticated));
  EXPECT_THAT(world.outcome().replies[1], StatusIs(kUnauthenticated));
  EXPECT_TRUE(world.outcome().events.empty());
}

TEST(CoreRevocationTest, EnrolmentTokensFromBeforeAreWorthless) {
  World world;
  ASSERT_THAT(world.Do(EnrolmentToken(world, "w0", '1'), "root"), IsOk());
  ASSERT_THAT(world.Do(EnrolmentToken(world, "w1", '2'), "root"), IsOk());

  // It has not called yet, but its token may have been used by now.
  ASSERT_THAT(world.Do(RevokeWorker{"w0", ""}, "root"), IsOk());
  ASSERT_THAT(world.Do(EnrolmentToken(world, "w0", '3'), "root"), IsOk());

  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '1'), "w0"}),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '2'), "w1"}), IsOk());
  EXPECT_THAT(world.Do(RedeemEnrolment{std::string(64, '3'), "w0"}), IsOk());
  const auto workers = std::get<WorkersReply>(*world.Do(ListWorkers{}));
  ASSERT_EQ(workers.workers.size(), 1u);
  EXPECT_EQ(workers.workers[0].worker.state, WorkerState::kGone);
  EXPECT_EQ(workers.workers[0].presence, Presence{});
}

TEST(CoreRevocationTest, TellsAMistypedName) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());

  EXPECT_THAT(world.Do(RevokeWorker{"w9", ""}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(world.Do(RevokeWorker{"W 0", ""}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(world.state().workers.size(), 1u);
}

}  // namespace
}  // namespace assay::core
