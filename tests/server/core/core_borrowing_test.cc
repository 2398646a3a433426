// Entries with borrowed hyperparameters: what was found is kept, and an entry is replaced once.

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/core/core.h"
#include "tests/server/core/world.h"
#include "tests/support/status_matchers.h"

namespace assay::core {
namespace {

using ::assay::testing::IsOk;
using ::assay::testing::StatusIs;
using core::testing::Creation;
using core::testing::SomeSpec;
using core::testing::World;
using ::testing::HasSubstr;

const BorrowingRecord kRecord = {1, 2, {{"opt_name", "\"sgd\"", "\"lamb\"", "borrowed"}}};

// A world with an original entry, e-1, and a lender, e-2.
class CoreBorrowingTest : public ::testing::Test {
 protected:
  CoreBorrowingTest() {
    world_.Submit();
    world_.Submit();
  }

  static CreateSubmission Borrowed(const std::string& request_id) {
    CreateSubmission command = Creation(SomeSpec(), request_id);
    command.spec.borrowing = Borrowing{.own = SubmissionId{1}, .lender = SubmissionId{2}};
    command.borrowing = kRecord;
    return command;
  }

  World world_;
};

TEST_F(CoreBorrowingTest, TheEntryKeepsWhatWasFound) {
  ASSERT_THAT(world_.Do(Borrowed("a")), IsOk());

  EXPECT_EQ(world_.submission(SubmissionId{3}).borrowing, kRecord);
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(CoreBorrowingTest, AnEntryIsReplacedOnce) {
  ASSERT_THAT(world_.Do(Borrowed("a")), IsOk());

  EXPECT_THAT(world_.Do(Borrowed("a")), IsOk()) << "the same request, repeated";
  EXPECT_THAT(world_.Do(Borrowed("b"), "bob"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("R-BOR-005")));
  EXPECT_THAT(world_.Do(Borrowed("b"), "bob"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("e-3")));
}

TEST_F(CoreBorrowingTest, WhatWasCancelledReplacedNothing) {
  ASSERT_THAT(world_.Do(Borrowed("a")), IsOk());
  ASSERT_THAT(world_.Do(CancelSubmission{SubmissionId{3}, "mistaken"}), IsOk());

  EXPECT_THAT(world_.Do(Borrowed("b")), IsOk());
  EXPECT_THAT(world_.Do(Borrowed("c")), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(world_.Fold(), world_.state());
}

TEST_F(CoreBorrowingTest, TheRulesRefuse) {
  CreateSubmission command = Borrowed("a");
  command.findings = {Finding{.rule_id = "R-BOR-001",
                              .key = "opt_name",
                              .expected = "the lender's value",
                              .found = "\"adam\"",
                              .remedy = "take the group"}};

  const auto reply = world_.Do(command);

  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kInvalidArgument,
                              HasSubstr("R-BOR-001 opt_name: expected the lender's value")));
  EXPECT_THAT(reply, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("take the group")));
}

}  // namespace
}  // namespace assay::core
