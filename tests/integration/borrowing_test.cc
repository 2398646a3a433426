// Borrowed hyperparameters as submitters and reviewers of a real assayd meet them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using ::testing::HasSubstr;

class BorrowingServiceTest : public ServiceTest {};

v1::SubmissionSpec WithRate(v1::SubmissionSpec spec, const std::string& rate) {
  for (v1::Hyperparameter& parameter : *spec.mutable_hyperparameters())
    if (parameter.key() == "opt_base_learning_rate") parameter.set_json_value(rate);
  return spec;
}

// The original is e-1 of Org, the lender e-2 of Rival, which is published.
TEST_F(BorrowingServiceTest, BorrowedHyperparametersAreCheckedAndKeptWithTheEntry) {
  const auto own = Create(&*root_, TinySpec("Org", 1));
  const v1::Submission lender =
      ImportEntry(WithRate(TinySpec("Rival", 1), "0.002"), "a log\n", absl::Now() - absl::Hours(1));
  Client org = WithToken("submitter", "Org");
  Client reviewer = WithToken("reviewer");
  v1::SubmissionSpec wrong = WithRate(TinySpec("Org", 1), "0.003");
  wrong.mutable_borrowing()->set_own_entry(own->name());
  wrong.mutable_borrowing()->set_lender_entry(lender.name());
  const v1::SubmissionSpec right = WithRate(wrong, "0.002");

  const auto refused = Create(&org, wrong);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("R-BOR-001")));
  v1::PlanSubmissionRequest plan;
  *plan.mutable_spec() = wrong;
  const auto planned = reviewer.Call(reviewer.submission(), &Submissions::PlanSubmission, plan);
  ASSERT_THAT(planned, IsOk());
  ASSERT_EQ(planned->findings_size(), 3);
  EXPECT_EQ(planned->findings(2).rule(), "R-SPC-006") << "there is no worker";
  EXPECT_EQ(planned->findings(0).expected(), "the lender's value, 0.002");

  const auto borrowed = Create(&org, right, "once");
  ASSERT_THAT(borrowed, IsOk());
  ASSERT_EQ(borrowed->borrowing().changes_size(), 1);
  EXPECT_EQ(borrowed->borrowing().changes(0).key(), "opt_base_learning_rate");
  EXPECT_EQ(borrowed->borrowing().changes(0).own_json(), "0.001");
  EXPECT_EQ(borrowed->borrowing().changes(0).json_value(), "0.002");
  EXPECT_EQ(borrowed->borrowing().lender_create_time().seconds(), lender.create_time().seconds());
  EXPECT_EQ(borrowed->spec().borrowing().lender_entry(), lender.name());
  EXPECT_EQ(Create(&org, right, "once")->name(), borrowed->name());

  EXPECT_THAT(Create(&org, right),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("R-BOR-005")));
  v1::CancelSubmissionRequest cancel;
  cancel.set_name(borrowed->name());
  ASSERT_THAT(org.Call(org.submission(), &Submissions::CancelSubmission, cancel), IsOk());
  EXPECT_THAT(Create(&org, right), IsOk());
}

// An entry that nobody else may see yet lends nothing, and does not exist.
TEST_F(BorrowingServiceTest, WhatIsHiddenIsNoLender) {
  const auto own = Create(&*root_, TinySpec("Org", 1));
  const auto hidden = Create(&*root_, WithRate(TinySpec("Rival", 1), "0.002"));
  Client org = WithToken("submitter", "Org");
  v1::SubmissionSpec spec = WithRate(TinySpec("Org", 1), "0.002");
  spec.mutable_borrowing()->set_own_entry(own->name());
  spec.mutable_borrowing()->set_lender_entry(hidden->name());

  const auto refused = Create(&org, spec);
  spec.mutable_borrowing()->set_lender_entry("submissions/e-9");
  const auto none = Create(&org, spec);

  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kNotFound, HasSubstr("lender_entry")));
  EXPECT_EQ(std::string(refused.status().message()),
            absl::StrReplaceAll(none.status().message(), {{"e-9", "e-2"}}));
}

TEST_F(BorrowingServiceTest, ABorrowingNeedsEntriesThatExist) {
  const auto rival = Create(&*root_, TinySpec("Rival", 1));
  Client org = WithToken("submitter", "Org");
  v1::SubmissionSpec spec = TinySpec("Org", 1);
  spec.mutable_borrowing()->set_own_entry(rival->name());
  spec.mutable_borrowing()->set_lender_entry(rival->name());
  EXPECT_THAT(Create(&org, spec), StatusIs(absl::StatusCode::kNotFound, HasSubstr("own_entry")));
  spec.mutable_borrowing()->set_own_entry("submissions/e-99");
  EXPECT_THAT(Create(&org, spec), StatusIs(absl::StatusCode::kNotFound, HasSubstr("e-99")));
  spec.mutable_borrowing()->set_own_entry("e-1");
  EXPECT_THAT(Create(&org, spec), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::testing
