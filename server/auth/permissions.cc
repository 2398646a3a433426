#include "server/auth/permissions.h"

#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "common/status.h"

namespace assay::auth {
namespace {

constexpr Access kNo = Access::kDenied;
constexpr Access kYes = Access::kAllowed;
constexpr Access kOwn = Access::kOwnOrganization;
constexpr Access kPub = Access::kPublished;
constexpr Access kSelf = Access::kSelf;

constexpr auto kTable = std::to_array<PermissionRow>({
    // clang-format off
    // method                                       publ  subm   revw  oper  worker
    {"assay.v1.SubmissionService/CreateSubmission",  kNo,  kOwn,  kNo,  kYes, kNo},
    {"assay.v1.SubmissionService/CreateSubmissionWithSource", kNo, kOwn, kNo, kYes, kNo},
    {"assay.v1.SubmissionService/PlanSubmission",    kNo,  kOwn,  kYes, kYes, kNo},
    {"assay.v1.SubmissionService/GetSubmission",     kPub, kPub,  kYes, kYes, kNo},
    {"assay.v1.SubmissionService/ListSubmissions",   kPub, kPub,  kYes, kYes, kNo},
    {"assay.v1.SubmissionService/CancelSubmission",  kNo,  kOwn,  kNo,  kYes, kNo},
    {"assay.v1.SubmissionService/WithdrawSubmission", kNo, kOwn,  kNo,  kYes, kNo},
    {"assay.v1.SubmissionService/PruneInstances",    kNo,  kOwn,  kNo,  kYes, kNo},
    {"assay.v1.SubmissionService/NoteSubmission",    kNo,  kOwn,  kYes, kYes, kNo},
    {"assay.v1.SubmissionService/PublishSubmission", kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.SubmissionService/ExplainSubmission", kNo,  kPub,  kYes, kYes, kNo},
    {"assay.v1.SubmissionService/JoinAllocation",    kNo,  kOwn,  kNo,  kYes, kNo},
    {"assay.v1.SubmissionService/GetRun",            kPub, kPub,  kYes, kYes, kNo},
    {"assay.v1.SubmissionService/ListRuns",          kPub, kPub,  kYes, kYes, kNo},
    {"assay.v1.SubmissionService/WatchEvents",       kPub, kPub,  kYes, kYes, kNo},
    {"assay.v1.SubmissionService/WatchRunEvents",    kPub, kPub,  kYes, kYes, kNo},
    {"assay.v1.SubmissionService/DownloadArtifact",  kPub, kPub,  kYes, kYes, kNo},
    {"assay.v1.SubmissionService/ImportSubmission",  kNo,  kNo,   kNo,  kYes, kNo},

    {"assay.v1.HistoryService/QueryResults",         kPub, kPub,  kYes, kYes, kNo},
    {"assay.v1.HistoryService/SaveView",             kNo,  kYes,  kYes, kYes, kNo},
    {"assay.v1.HistoryService/ListViews",            kYes, kYes,  kYes, kYes, kNo},
    {"assay.v1.HistoryService/RemoveView",           kNo,  kYes,  kYes, kYes, kNo},

    {"assay.v1.WorkerService/Synchronize",           kNo,  kNo,   kNo,  kNo,  kSelf},
    {"assay.v1.WorkerService/StreamEvents",          kNo,  kNo,   kNo,  kNo,  kSelf},
    {"assay.v1.WorkerService/UploadArtifact",        kNo,  kNo,   kNo,  kNo,  kSelf},
    {"assay.v1.WorkerService/DownloadSource",        kNo,  kNo,   kNo,  kNo,  kSelf},

    {"assay.v1.EnrolmentService/Enrol",              kNo,  kYes,  kYes, kYes, kYes},

    {"assay.v1.AdminService/CreateToken",            kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/ListTokens",             kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/RevokeToken",            kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/CreateWebCode",          kNo,  kYes,  kYes, kYes, kNo},
    {"assay.v1.AdminService/RedeemWebCode",          kYes, kYes,  kYes, kYes, kNo},
    {"assay.v1.AdminService/ListWorkers",            kNo,  kYes,  kYes, kYes, kYes},
    {"assay.v1.AdminService/GetWorker",              kNo,  kYes,  kYes, kYes, kYes},
    {"assay.v1.AdminService/DrainWorker",            kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/ResumeWorker",           kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/LabelWorker",            kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/RevokeWorker",           kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/ListAllocations",        kNo,  kYes,  kYes, kYes, kYes},
    {"assay.v1.AdminService/GetAllocation",          kNo,  kYes,  kYes, kYes, kYes},
    {"assay.v1.AdminService/RequestAllocation",      kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/ReleaseAllocation",      kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/AddDataset",             kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/ListDatasets",           kNo,  kYes,  kYes, kYes, kYes},
    {"assay.v1.AdminService/RemoveDataset",          kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/OrderCaches",            kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/ListRounds",             kYes, kYes,  kYes, kYes, kYes},
    {"assay.v1.AdminService/GetServerInfo",          kYes, kYes,  kYes, kYes, kYes},
    {"assay.v1.AdminService/ListAudit",              kNo,  kNo,   kYes, kYes, kNo},
    {"assay.v1.AdminService/VerifyStore",            kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/BackUpStore",            kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/PruneStore",             kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/GetUsage",               kNo,  kNo,   kNo,  kYes, kNo},
    {"assay.v1.AdminService/GetDiagnostics",         kNo,  kNo,   kNo,  kYes, kNo},
    // clang-format on
});

Access Cell(const PermissionRow& row, Role role) {
  switch (role) {
    case Role::kAnonymous:
      return Access::kDenied;
    case Role::kPublic:
      return row.public_;
    case Role::kSubmitter:
      return row.submitter;
    case Role::kReviewer:
      return row.reviewer;
    case Role::kOperator:
      return row.operator_;
    case Role::kWorker:
      return row.worker;
  }
  return Access::kDenied;
}

const PermissionRow* FindRow(absl::string_view method) {
  const absl::string_view name = absl::StripPrefix(method, "/");
  for (const PermissionRow& row : kTable) {
    if (name == row.method) return &row;
  }
  return nullptr;
}

// "operator or submitter": whoever may call the method of `row`.
std::string RolesThatMay(const PermissionRow* row) {
  std::vector<absl::string_view> names;
  for (const Role role :
       {Role::kPublic, Role::kSubmitter, Role::kReviewer, Role::kOperator, Role::kWorker}) {
    if (row != nullptr && Cell(*row, role) != Access::kDenied) names.push_back(RoleName(role));
  }
  return names.empty() ? "nobody" : absl::StrJoin(names, " or ");
}

}  // namespace

std::span<const PermissionRow> PermissionTable() {
  return kTable;
}

Access AccessOf(Role role, absl::string_view method) {
  const PermissionRow* const row = FindRow(method);
  return row == nullptr ? Access::kDenied : Cell(*row, role);
}

absl::Status CheckMethod(const Identity& identity, absl::string_view method) {
  if (AccessOf(identity.role, method) != Access::kDenied) return absl::OkStatus();
  const std::string roles = RolesThatMay(FindRow(method));
  if (identity.role == Role::kAnonymous) {
    return absl::UnauthenticatedError(
        absl::StrCat(method,
                     " needs to know who calls: send a token (authorization: Bearer ...), "
                     "a worker's certificate, or use the Unix socket"));
  }
  return absl::PermissionDeniedError(absl::StrCat(
      identity.principal, " is ", RoleName(identity.role), "; ", method, " is for ", roles));
}

core::VisibleTo VisibleThrough(const Identity& identity, absl::string_view method, absl::Time now) {
  core::VisibleTo viewer = {.now_us = absl::ToUnixMicros(now)};
  switch (AccessOf(identity.role, method)) {
    case Access::kDenied:
    case Access::kSelf:
      return viewer;
    case Access::kAllowed:
      viewer.sees_all = true;
      return viewer;
    case Access::kPublished:
      viewer.sees_published = true;
      viewer.organization = identity.organization;
      return viewer;
    case Access::kOwnOrganization:
      viewer.organization = identity.organization;
      return viewer;
  }
  return viewer;
}

absl::Status CheckOrganization(const Identity& identity, absl::string_view method,
                               absl::string_view organization) {
  RETURN_IF_ERROR(CheckMethod(identity, method));
  const Access access = AccessOf(identity.role, method);
  if (access != Access::kOwnOrganization && access != Access::kPublished) return absl::OkStatus();
  if (!identity.organization.empty() && identity.organization == organization)
    return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      identity.principal, " acts for organization \"", identity.organization, "\", not for \"",
      organization, "\": ask an operator for a token of that organization"));
}

absl::Status CheckWorker(const Identity& identity, absl::string_view worker) {
  if (identity.role == Role::kWorker && identity.principal == worker) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("the caller's certificate is of \"",
                                                  identity.principal, "\", it cannot speak as \"",
                                                  worker, "\": enrol under that name"));
}

}  // namespace assay::auth
