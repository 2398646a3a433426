#include "server/store/diagnosis.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "common/file.h"
#include "common/status.h"
#include "server/store/sqlite.h"

namespace assay::store {
namespace {

// What SQLite lists of a damaged database at most.
constexpr char kQuickCheck[] = "PRAGMA quick_check(100)";

absl::Status QuickCheck(Db* db, core::StoreDiagnosis* diagnosis) {
  ASSIGN_OR_RETURN(Stmt check, db->Prepare(kQuickCheck));
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, check.Step());
    if (!is_row) return absl::OkStatus();
    if (check.Text(0) != "ok") diagnosis->problems.emplace_back(check.Text(0));
  }
}

}  // namespace

absl::StatusOr<core::StoreDiagnosis> Diagnose(const std::string& data_directory, bool is_checked,
                                              absl::Duration patience) {
  ASSIGN_OR_RETURN(Db db, Db::Open(JoinPath(data_directory, "assay.db"), OpenMode::kReadOnly));
  core::StoreDiagnosis diagnosis;
  ASSIGN_OR_RETURN(diagnosis.schema_version, db.QueryInt("PRAGMA user_version"));
  if (!is_checked) return diagnosis;
  const absl::Time end = absl::Now() + patience;
  db.EndWhen([end] { return absl::Now() >= end; });
  const absl::Status status = QuickCheck(&db, &diagnosis);
  diagnosis.is_checked = status.ok();
  if (absl::IsDeadlineExceeded(status)) {
    diagnosis.problems.push_back(absl::StrCat("quick_check did not end within ",
                                              absl::FormatDuration(patience),
                                              ": assay admin verify looks at all"));
  } else if (!status.ok()) {
    diagnosis.problems.push_back(absl::StrCat("quick_check: ", status.message()));
  }
  return diagnosis;
}

}  // namespace assay::store
