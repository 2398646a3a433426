#include "server/auth/permissions.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

#include "assay/v1/admin_service.pb.h"
#include "assay/v1/history_service.pb.h"
#include "assay/v1/submission_service.pb.h"
#include "assay/v1/worker_service.pb.h"

#include "tests/support/status_matchers.h"

namespace assay::auth {
namespace {

using assay::testing::IsOk;
using assay::testing::StatusIs;
using ::testing::HasSubstr;

// What the manual promises (docs/security.md), written down a second time: method, then one letter
// each for public, submitter, reviewer, operator, worker: - denied, A all, O own organization, P
// what is published beside it, S itself.
constexpr char kPromised[] = R"(
SubmissionService/CreateSubmissionWithSource -O-A-
SubmissionService/CreateSubmission  -O-A-
SubmissionService/PlanSubmission    -OAA-
SubmissionService/GetSubmission     PPAA-
SubmissionService/ListSubmissions   PPAA-
SubmissionService/CancelSubmission  -O-A-
SubmissionService/JoinAllocation    -O-A-
SubmissionService/NoteSubmission -OAA-
SubmissionService/PruneInstances -O-A-
SubmissionService/PublishSubmission ---A-
SubmissionService/WithdrawSubmission -O-A-
SubmissionService/ExplainSubmission -PAA-
SubmissionService/GetRun            PPAA-
SubmissionService/ListRuns          PPAA-
SubmissionService/WatchEvents       PPAA-
SubmissionService/WatchRunEvents    PPAA-
SubmissionService/DownloadArtifact  PPAA-
SubmissionService/ImportSubmission  ---A-
HistoryService/QueryResults         PPAA-
HistoryService/SaveView             -AAA-
HistoryService/ListViews            AAAA-
HistoryService/RemoveView           -AAA-
WorkerService/Synchronize           ----S
WorkerService/StreamEvents          ----S
WorkerService/UploadArtifact        ----S
WorkerService/DownloadSource         ----S
EnrolmentService/Enrol              -AAAA
AdminService/CreateToken            ---A-
AdminService/ListTokens             ---A-
AdminService/RevokeToken            ---A-
AdminService/CreateWebCode          -AAA-
AdminService/RedeemWebCode          AAAA-
AdminService/ListWorkers            -AAAA
AdminService/GetWorker              -AAAA
AdminService/DrainWorker            ---A-
AdminService/OrderCaches            ---A-
AdminService/ResumeWorker           ---A-
AdminService/RevokeWorker           ---A-
AdminService/LabelWorker            ---A-
AdminService/ListAllocations        -AAAA
AdminService/GetAllocation          -AAAA
AdminService/RequestAllocation      ---A-
AdminService/ReleaseAllocation      ---A-
AdminService/AddDataset             ---A-
AdminService/ListDatasets           -AAAA
AdminService/RemoveDataset          ---A-
AdminService/ListRounds             AAAAA
AdminService/GetServerInfo          AAAAA
AdminService/ListAudit              --AA-
AdminService/VerifyStore            ---A-
AdminService/BackUpStore            ---A-
AdminService/PruneStore             ---A-
AdminService/GetUsage               ---A-
AdminService/GetDiagnostics         ---A-
)";

constexpr Role kRoles[] = {Role::kPublic, Role::kSubmitter, Role::kReviewer, Role::kOperator,
                           Role::kWorker};

std::map<std::string, std::string> Promised() {
  std::map<std::string, std::string> rows;
  for (absl::string_view line : absl::StrSplit(kPromised, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    rows[absl::StrCat("assay.v1.", words[0])] = words[1];
  }
  return rows;
}

char Letter(Access access) {
  switch (access) {
    case Access::kDenied:
      return '-';
    case Access::kAllowed:
      return 'A';
    case Access::kOwnOrganization:
      return 'O';
    case Access::kPublished:
      return 'P';
    case Access::kSelf:
      return 'S';
  }
  return '?';
}

std::set<std::string> MethodsOfAllServices() {
  std::set<std::string> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::SubmissionSpec::descriptor()->file(), v1::CreateSubmissionRequest::descriptor()->file(),
        v1::EnrolRequest::descriptor()->file(), v1::Token::descriptor()->file(),
        v1::QueryColumn::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.insert(absl::StrCat(std::string(file->service(s)->full_name()), "/",
                                    std::string(file->service(s)->method(m)->name())));
      }
    }
  }
  return methods;
}

TEST(PermissionsTest, EveryMethodOfEveryServiceHasExactlyOneRow) {
  std::multiset<std::string> rows;
  for (const PermissionRow& row : PermissionTable())
    rows.insert(row.method);

  const std::set<std::string> methods = MethodsOfAllServices();
  EXPECT_GE(methods.size(), 30u);
  EXPECT_THAT(rows, ::testing::ElementsAreArray(methods));
}

TEST(PermissionsTest, EveryCellIsAsPromised) {
  const std::map<std::string, std::string> promised = Promised();
  ASSERT_EQ(promised.size(), PermissionTable().size());
  for (const auto& [method, letters] : promised) {
    std::string actual;
    for (const Role role : kRoles)
      actual += Letter(AccessOf(role, method));
    EXPECT_EQ(actual, letters) << method;
    EXPECT_EQ(AccessOf(Role::kAnonymous, method), Access::kDenied) << method;
    for (const Role role : kRoles) {
      const Identity caller = {.principal = "x", .role = role, .organization = "fjord"};
      const bool is_open = AccessOf(role, method) != Access::kDenied;
      EXPECT_EQ(CheckMethod(caller, method).ok(), is_open) << method << " " << RoleName(role);
    }
  }
}

TEST(PermissionsTest, WhatHasNoRowIsDeniedToEveryone) {
  for (const Role role : kRoles) {
    EXPECT_EQ(AccessOf(role, "/assay.v1.AdminService/Shutdown"), Access::kDenied);
    EXPECT_EQ(AccessOf(role, ""), Access::kDenied);
  }
}

TEST(PermissionsTest, TheLeadingSlashOfGrpcMakesNoDifference) {
  EXPECT_EQ(AccessOf(Role::kWorker, "/assay.v1.WorkerService/Synchronize"), Access::kSelf);
}

TEST(PermissionsTest, ASubmitterActsForItsOwnOrganizationOnly) {
  const Identity alice = {.principal = "alice", .role = Role::kSubmitter, .organization = "fjord"};
  const char* const create = "/assay.v1.SubmissionService/CreateSubmission";

  EXPECT_THAT(CheckOrganization(alice, create, "fjord"), IsOk());
  EXPECT_THAT(CheckOrganization(alice, create, "rival"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("\"rival\"")));

  const Identity nobody = {.principal = "bob", .role = Role::kSubmitter};
  EXPECT_THAT(CheckOrganization(nobody, create, ""), StatusIs(absl::StatusCode::kPermissionDenied));
  const Identity root = {.principal = "root", .role = Role::kOperator};
  EXPECT_THAT(CheckOrganization(root, create, "rival"), IsOk());
}

TEST(PermissionsTest, WhatIsPublishedIsSeenAndNotTouched) {
  constexpr char kGet[] = "/assay.v1.SubmissionService/GetSubmission";
  const absl::Time now = absl::FromUnixMicros(1000);
  const Identity alice = {.principal = "alice", .role = Role::kSubmitter, .organization = "fjord"};
  const Identity site = {.principal = "web", .role = Role::kPublic};

  EXPECT_EQ(VisibleThrough(alice, kGet, now),
            (core::VisibleTo{.organization = "fjord", .sees_published = true, .now_us = 1000}));
  EXPECT_EQ(VisibleThrough(site, kGet, now),
            (core::VisibleTo{.sees_published = true, .now_us = 1000}));
  EXPECT_THAT(CheckOrganization(site, kGet, ""), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(CheckOrganization(alice, kGet, "rival"),
              StatusIs(absl::StatusCode::kPermissionDenied));
  const Identity rita = {.principal = "rita", .role = Role::kReviewer};
  EXPECT_TRUE(VisibleThrough(rita, kGet, now).sees_all);
  EXPECT_EQ(VisibleThrough(rita, "/assay.v1.X/NoSuchMethod", now), core::VisibleTo{.now_us = 1000});
  EXPECT_EQ(VisibleThrough({}, kGet, now), core::VisibleTo{.now_us = 1000});
  const Identity worker = {.principal = "w0", .role = Role::kWorker};
  EXPECT_EQ(VisibleThrough(worker, "/assay.v1.WorkerService/Synchronize", now),
            core::VisibleTo{.now_us = 1000});
}

TEST(PermissionsTest, AWorkerSpeaksOnlyAsItself) {
  const Identity w0 = {.principal = "w0", .role = Role::kWorker};
  EXPECT_THAT(CheckWorker(w0, "w0"), IsOk());
  EXPECT_THAT(CheckWorker(w0, "w1"), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(CheckWorker({.principal = "w0", .role = Role::kOperator}, "w0"),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST(PermissionsTest, TellsTheStrangerHowToIdentifyAndTheKnownWhoMay) {
  EXPECT_THAT(CheckMethod({}, "/assay.v1.AdminService/ListTokens"),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("token")));
  EXPECT_THAT(CheckMethod({.principal = "alice", .role = Role::kSubmitter},
                          "/assay.v1.AdminService/ListTokens"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("for operator")));
}

}  // namespace
}  // namespace assay::auth
