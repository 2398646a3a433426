// A SQLite database that is written once, for other programs to read. It is filled beside its place
// and moved there when it is whole and on the disk: a reader finds all of it, or what was there
// before. Not for data that is kept and changed: that is the store's (server/store).

#ifndef COMMON_DATABASE_DATABASE_FILE_H_
#define COMMON_DATABASE_DATABASE_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace assay {

// monostate: NULL.
using DatabaseValue = std::variant<std::monostate, int64_t, double, std::string>;

// Codes: RESOURCE_EXHAUSTED the disk is full; INVALID_ARGUMENT a constraint or SQL that is none;
// else UNKNOWN with SQLite's words. Messages name the path. Movable; not thread-safe.
class DatabaseFile {
 public:
  // Begins a database that Finish will call `path`. An errno code where no file can be made there.
  static absl::StatusOr<DatabaseFile> Create(const std::string& path);

  // Removes what was not finished.
  ~DatabaseFile();
  DatabaseFile(DatabaseFile&& other) noexcept;
  DatabaseFile& operator=(DatabaseFile&&) = delete;

  // One statement, with a value for each of its places. It is prepared once for each text.
  absl::Status Run(const std::string& sql, std::span<const DatabaseValue> values = {});

  // Commits, syncs and gives the file its name, also where there is one already. Nothing may be run
  // afterwards.
  absl::Status Finish();

 private:
  struct CloseDb {
    void operator()(sqlite3* db) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Db = std::unique_ptr<sqlite3, CloseDb>;
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

  DatabaseFile(std::string path, std::string temporary);
  absl::StatusOr<sqlite3_stmt*> Prepared(const std::string& sql);
  absl::Status Error(int code) const;

  std::string path_;
  std::string temporary_;  // empty: there is none any more
  Db db_;
  std::map<std::string, Statement> statements_;  // by their text
};

// `name` as SQL's own, whatever it is.
std::string SqlName(const std::string& name);

}  // namespace assay

#endif  // COMMON_DATABASE_DATABASE_FILE_H_
