// The audit as those who may read it see it, of a real daemon.

#include <set>
#include <string>

#include "absl/strings/str_cat.h"

#include "tests/integration/service_fixture.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(ServiceTest, TheAuditNamesWhoChangedWhat) {
  Client fjord = WithToken("submitter", "Fjord");
  Create(&fjord, TinySpec("Fjord", 1)).value();
  v1::ListAuditRequest request;
  request.set_with_bodies(true);
  const auto audit = root_->Call(root_->admin(), &Admin::ListAudit, request);
  ASSERT_THAT(audit, IsOk());
  std::set<std::string> seen;
  for (const v1::AuditEntry& entry : audit->entries()) {
    seen.insert(absl::StrCat(entry.principal(), " ", entry.type()));
    EXPECT_NE(entry.body_json(), "");
    EXPECT_THAT(entry.body_json(), AllOf(Not(HasSubstr("assay_")), Not(HasSubstr("sha256\":\""))))
        << entry.type();
    EXPECT_EQ(entry.outcome(), "done");
  }
  EXPECT_THAT(seen, ::testing::IsSupersetOf({"root DatasetAdded", "root TokenCreated",
                                             "the-submitter SubmissionCreated"}));
}

TEST_F(ServiceTest, TheAuditHasCallsThatWereRefused) {
  Client fjord = WithToken("submitter", "Fjord");
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(fjord.Call(fjord.admin(), &Admin::ListTokens, {}),
                StatusIs(absl::StatusCode::kPermissionDenied));
  ASSERT_THAT(deployment_.Terminate(), IsOk());
  ASSERT_THAT(deployment_.Start(), IsOk());

  Client root(deployment_.Unix());
  v1::ListAuditRequest request;
  request.set_principal("the-submitter");
  const auto audit = root.Call(root.admin(), &Admin::ListAudit, request);
  ASSERT_THAT(audit, IsOk());
  ASSERT_THAT(audit->entries(), SizeIs(1));
  EXPECT_EQ(audit->entries(0).type(), "CallsRefused");
  EXPECT_EQ(audit->entries(0).outcome(), "refused");
  EXPECT_THAT(audit->entries(0).detail(), AllOf(HasSubstr("ListTokens"), HasSubstr("3 times")));
}

}  // namespace
}  // namespace assay::testing
