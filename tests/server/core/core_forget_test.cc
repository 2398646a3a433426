// What leaves memory, when, and what must stay.

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/forget.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using core::testing::kSecond;
using core::testing::SomeSpec;
using core::testing::SomeToken;
using core::testing::World;
using ::testing::IsEmpty;

TEST(ForgetTest, WorkersThatAreGoneForLongLeaveMemoryButNotWhatOperatorsSaidOfThem) {
  World world;
  for (const char* name : {"w0", "w1", "w2"})
    ASSERT_THAT(world.Sync(name), IsOk());
  ASSERT_THAT(world.Do(DrainWorker{"w1", ""}), IsOk());
  ASSERT_THAT(world.Do(RevokeWorker{"w2", ""}), IsOk());
  world.is_leaving = true;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  world.is_leaving = false;

  world.Wait(kRememberUs - kSecond);
  EXPECT_TRUE(world.state().workers.contains("w0"));
  world.Wait(2 * 3600 * kSecond);

  EXPECT_FALSE(world.state().workers.contains("w0"));
  EXPECT_TRUE(world.state().workers.contains("w1"));
  EXPECT_TRUE(world.state().workers.contains("w2"));
  EXPECT_EQ(world.Fold(), world.state());
  EXPECT_THAT(world.Do(RevokeWorker{"w0", ""}), StatusIs(absl::StatusCode::kNotFound));
  WorkerDescription past = world.Describe("w0");
  past.version = "kept";
  ASSERT_THAT(world.Do(RevokeWorker{"w0", "stolen", past}), IsOk());
  EXPECT_EQ(world.worker("w0").certificate_generation, 1);
  EXPECT_EQ(world.worker("w0").description.version, "kept");
  EXPECT_EQ(world.worker("w0").state, WorkerState::kGone);
}

TEST(ForgetTest, TenThousandWorkersThatCameAndWentLeaveNothing) {
  constexpr int kGenerations = 100;
  constexpr int kWorkers = 100;
  World world;
  for (int g = 0; g < kGenerations; ++g) {
    for (const bool is_leaving : {false, true}) {
      world.is_leaving = is_leaving;
      for (int i = 0; i < kWorkers; ++i)
        ASSERT_THAT(world.Sync(absl::StrCat("w", g, "-", i)), IsOk());
    }
    world.Wait(kRememberUs);
    world.Wait(2 * 3600 * kSecond);
    ASSERT_THAT(world.state().workers, IsEmpty());
  }
}

TEST(ForgetTest, ARequestIsRememberedForItsTimeAndNoLonger) {
  World world;
  ASSERT_THAT(world.Do(SomeToken()), IsOk());
  const CreateSubmission creation = core::testing::Creation(SomeSpec(), "same");
  ASSERT_THAT(world.Do(creation), IsOk());

  world.Wait(kRememberUs - kSecond);
  EXPECT_EQ(std::get<SubmissionReply>(*world.Do(creation)).id, SubmissionId{1});
  EXPECT_EQ(world.state().tokens.size(), 1u);
  world.Wait(2 * 3600 * kSecond);

  EXPECT_EQ(std::get<SubmissionReply>(*world.Do(creation)).id, SubmissionId{2});
  EXPECT_THAT(world.state().tokens, IsEmpty()) << "it expired long ago";
  EXPECT_EQ(world.Fold(), world.state());
}

TEST(ForgetTest, ImportsAndBorrowingsAreNeverForgotten) {
  World world;
  ImportSubmission import{.spec = SomeSpec(), .source_path = "lab/results"};
  ASSERT_THAT(world.Do(import), IsOk());
  world.Wait(2 * kRememberUs);
  EXPECT_TRUE(std::get<SubmissionReply>(*world.Do(import)).is_repeated);
}

}  // namespace
}  // namespace assay::core
