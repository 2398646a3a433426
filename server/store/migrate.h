// Brings a database to the schema of this program: migrations/*.sql, embedded, forward only.

#ifndef SERVER_STORE_MIGRATE_H_
#define SERVER_STORE_MIGRATE_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "server/store/sqlite.h"

namespace assay::store {

struct Migration {
  const char* name;  // 0001_init.sql
  const char* sql;
};

// The steps that this program was built with, in order; step k makes PRAGMA user_version k.
std::span<const Migration> EmbeddedMigrations();

// Gives a database of before page checksums (checked_vfs.h) a copy of itself that has them, after a
// backup as below. Nothing if there is no database, or one with checksums. Before any connection of
// this process. RESOURCE_EXHAUSTED: it needs as much room again as the database has.
absl::Status AddPageChecksums(const std::string& path);

// Applies the steps that `db` lacks, each in a transaction of its own; before the first of them a
// database that is not empty is copied to `<path>.v<version>.bak` (kept if it exists already).
// FAILED_PRECONDITION if the database is newer than `migrations`: use a newer program.
absl::Status Migrate(Db* db, const std::string& path, std::span<const Migration> migrations);

}  // namespace assay::store

#endif  // SERVER_STORE_MIGRATE_H_
