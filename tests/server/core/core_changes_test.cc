// What people change of what is there already: entries that are withdrawn, labels of nodes.

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/core.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::kInvalid;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr auto kConflict = absl::StatusCode::kFailedPrecondition;

TEST(CoreWithdrawalTest, WhatGoesOnEndsAndIsMarked) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit();
  world.Executing("w0", RunId{1});

  ASSERT_THAT(world.Do(WithdrawSubmission{id, "wrong system"}), IsOk());

  EXPECT_EQ(world.submission(id).state, SubmissionState::kCancelled);
  EXPECT_EQ(world.submission(id).state_reason, "withdrawn by alice: wrong system");
  EXPECT_EQ(world.submission(id).withdrawn_at_us, world.now_us());
  EXPECT_EQ(world.Executing("w0", RunId{1}).action, DesiredAction::kStop);
}

TEST(CoreWithdrawalTest, WhatHasEndedKeepsItsVerdictAndIsNeverPublished) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit();
  world.Succeed(RunId{1});
  ASSERT_THAT(world.Do(SetScored{.submission = id, .score_minutes = 1}, "coordinator"), IsOk());
  const int64_t later_us = world.now_us() + 1000 * core::testing::kSecond;
  ASSERT_THAT(world.Do(PublishSubmission{id, later_us}), IsOk());

  ASSERT_THAT(world.Do(WithdrawSubmission{id, ""}), IsOk());

  const auto again = world.Do(WithdrawSubmission{id, "said once"});
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(std::get<SubmissionReply>(*again).is_repeated);
  const auto& submission = *std::get<SubmissionReply>(*again).submission;
  EXPECT_EQ(submission.state, SubmissionState::kValid);
  EXPECT_EQ(submission.withdraw_reason, "withdrawn by alice");
  EXPECT_EQ(submission.published_at_us, 0) << "it would have been published later";
  EXPECT_THAT(world.Do(PublishSubmission{id}), StatusIs(kConflict, HasSubstr("was withdrawn")));
}

TEST(CoreWithdrawalTest, WhatIsPublishedStays) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());
  const SubmissionId id = world.Submit();
  world.Succeed(RunId{1});
  ASSERT_THAT(world.Do(SetScored{.submission = id, .score_minutes = 1}, "coordinator"), IsOk());
  ASSERT_THAT(world.Do(PublishSubmission{id}), IsOk());
  ASSERT_THAT(world.Do(ImportSubmission{.spec = SomeSpec(), .source_path = "org/results"}), IsOk());

  EXPECT_THAT(world.Do(WithdrawSubmission{id, ""}), StatusIs(kConflict, HasSubstr("committee")));
  EXPECT_THAT(world.Do(WithdrawSubmission{SubmissionId{2}, ""}),
              StatusIs(kConflict, HasSubstr("imported")));
  EXPECT_THAT(world.Do(WithdrawSubmission{SubmissionId{9}, ""}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(CoreLabelsTest, PlacementTakesAnOperatorsLabelBeforeTheAgents) {
  World world;
  world.labels["w0"] = {{"rack", "a"}};
  ASSERT_THAT(world.Sync("w0"), IsOk());
  SubmissionSpec spec = SomeSpec();
  spec.worker_labels = {{"rack", "b"}};
  const RunId run = world.submission(world.Submit(spec)).runs[0];
  ASSERT_EQ(world.run(run).state, RunState::kQueued);

  ASSERT_THAT(world.Do(LabelWorker{"w0", {{"rack", "b"}}}, "root"), IsOk());

  EXPECT_EQ(world.run(run).state, RunState::kAssigned);
  EXPECT_THAT(world.worker("w0").operator_labels, ElementsAre(Pair("rack", "b")));
  ASSERT_THAT(world.Do(LabelWorker{"w0", {{"gpu", "h100"}}, {"rack", "never-there"}}), IsOk());
  EXPECT_THAT(LabelsOf(world.worker("w0")), ElementsAre(Pair("gpu", "h100"), Pair("rack", "a")));
}

TEST(CoreLabelsTest, WhatIsNoLabelIsRefused) {
  World world;
  ASSERT_THAT(world.Sync("w0"), IsOk());

  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"", "x"}, {"a b", "x"}, {"rack", ""}, {"row", "\x1b[2J"}, {"node", "n7"}})
    EXPECT_THAT(world.Do(LabelWorker{"w0", {{name, value}}}),
                StatusIs(kInvalid, HasSubstr("label")))
        << name << "=" << value;
  EXPECT_THAT(world.Do(LabelWorker{"w9", {{"rack", "b"}}}), StatusIs(absl::StatusCode::kNotFound));
  LabelWorker many{.worker = "w0"};
  for (size_t i = 0; i <= kWorkerLabelCountMax; ++i)
    many.labels[absl::StrCat("label-", i)] = "x";
  EXPECT_THAT(world.Do(many), StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace assay::core
