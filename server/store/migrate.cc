#include "server/store/migrate.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"

namespace assay::store {
namespace {

constexpr int64_t kDatabaseBytesMax = int64_t{1} << 40;

absl::Status BackUp(Db* db, const std::string& path, int64_t version) {
  const std::string backup_path = absl::StrCat(path, ".v", version, ".bak");
  if (FileExists(backup_path)) return absl::OkStatus();
  // Into a file of another name first: one that stops half-way is no backup.
  const std::string partial_path = backup_path + ".partial";
  RETURN_IF_ERROR(RemoveTree(partial_path));
  ASSIGN_OR_RETURN(Stmt vacuum, db->Prepare("VACUUM INTO ?1"));
  RETURN_IF_ERROR(Annotate(vacuum.Run(partial_path), "backup before migration"));
  ASSIGN_OR_RETURN(const std::string content, ReadFile(partial_path, kDatabaseBytesMax));
  RETURN_IF_ERROR(WriteFileAtomic(backup_path, content, 0600));
  LOG(INFO) << "backup path=" << backup_path << " version=" << version;
  return RemoveTree(partial_path);
}

}  // namespace

absl::Status Migrate(Db* db, const std::string& path, std::span<const Migration> migrations) {
  ASSIGN_OR_RETURN(const int64_t version, db->QueryInt("PRAGMA user_version"));
  const auto known = static_cast<int64_t>(migrations.size());
  if (version > known)
    return absl::FailedPreconditionError(
        absl::StrCat("database ", path, " has schema version ", version, ", this program knows ",
                     known, "; use a newer program, or restore a backup"));
  if (version > 0 && version < known) RETURN_IF_ERROR(BackUp(db, path, version));
  for (int64_t step = version; step < known; ++step) {
    const Migration& migration = migrations[static_cast<size_t>(step)];
    const std::string sql = absl::StrCat(migration.sql, "\nPRAGMA user_version = ", step + 1, ";");
    RETURN_IF_ERROR(Annotate(db->Transact([&] { return db->Exec(sql); }), migration.name));
    LOG(INFO) << "migrated name=" << migration.name;
  }
  return absl::OkStatus();
}

}  // namespace assay::store
