#include "server/store/migrate.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "server/store/chain_rows.h"
#include "server/store/checked_vfs.h"

namespace assay::store {
namespace {

constexpr absl::string_view kChainEvents = "0004_chain_events.sql";

absl::Status BackUp(Db* db, const std::string& path, int64_t version) {
  const std::string backup_path = absl::StrCat(path, ".v", version, ".bak");
  if (FileExists(backup_path)) return absl::OkStatus();
  // Into a file of another name first: one that stops half-way is no backup.
  const std::string partial_path = backup_path + ".partial";
  RETURN_IF_ERROR(WriteFileAtomic(partial_path, "", kPrivateFile));
  ASSIGN_OR_RETURN(Stmt vacuum, db->Prepare("VACUUM INTO ?1"));
  RETURN_IF_ERROR(Annotate(vacuum.Run(partial_path), "backup before migration"));
  RETURN_IF_ERROR(RenameSynced(partial_path, backup_path));
  LOG(INFO) << "backup path=" << backup_path << " version=" << version;
  return absl::OkStatus();
}

// Whether the first page has no room for a checksum, and none in that place either: then it is not
// one whose header was damaged. See fileformat2.html, section 1.3.
absl::StatusOr<bool> LacksPageChecksums(const std::string& path) {
  if (!FileExists(path)) return false;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, path);
  std::array<unsigned char, kPageBytes> page{};
  const ssize_t size = pread(fd.get(), page.data(), page.size(), 0);
  if (size < 0) return absl::ErrnoToStatus(errno, path);
  constexpr char kMagic[] = "SQLite format 3";
  constexpr size_t kReserveAt = 20;
  return static_cast<size_t>(size) == page.size() &&
         std::memcmp(page.data(), kMagic, sizeof(kMagic)) == 0 && page[kReserveAt] == 0 &&
         !HasPageTag(page);
}

}  // namespace

absl::Status AddPageChecksums(const std::string& path) {
  ASSIGN_OR_RETURN(const bool is_needed, LacksPageChecksums(path));
  if (!is_needed) return absl::OkStatus();
  const std::string sealed_path = path + ".sealed";
  {
    ASSIGN_OR_RETURN(Db db, Db::Open(path, OpenMode::kUnsealed));
    // What the write-ahead log holds goes into the database: the log must not outlive it.
    RETURN_IF_ERROR(Annotate(db.Exec("PRAGMA journal_mode = DELETE"), path));
    ASSIGN_OR_RETURN(const int64_t version, db.QueryInt("PRAGMA user_version"));
    RETURN_IF_ERROR(BackUp(&db, path, version));
    RETURN_IF_ERROR(WriteFileAtomic(sealed_path, "", kPrivateFile));
    RETURN_IF_ERROR(Annotate(db.CopySealed(sealed_path), "page checksums"));
  }
  RETURN_IF_ERROR(RenameSynced(sealed_path, path));
  LOG(INFO) << "page checksums added path=" << path;
  return absl::OkStatus();
}

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
    const auto apply = [&]() -> absl::Status {
      RETURN_IF_ERROR(db->Exec(sql));
      // What SQL cannot do.
      return migration.name == kChainEvents ? ChainStoredEvents(db) : absl::OkStatus();
    };
    RETURN_IF_ERROR(Annotate(db->Transact(apply), migration.name));
    LOG(INFO) << "migrated name=" << migration.name;
  }
  return absl::OkStatus();
}

}  // namespace assay::store
