#include "common/database/database_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "common/file.h"
#include "common/status.h"

namespace assay {
namespace {

constexpr int kReadable = 0644;  // less the umask

int BindValue(sqlite3_stmt* statement, int place, const DatabaseValue& value) {
  if (const auto* const integer = std::get_if<int64_t>(&value))
    return sqlite3_bind_int64(statement, place, *integer);
  if (const auto* const number = std::get_if<double>(&value))
    return sqlite3_bind_double(statement, place, *number);
  if (const auto* const text = std::get_if<std::string>(&value))
    return sqlite3_bind_text64(statement, place, text->data(), text->size(), SQLITE_STATIC,
                               SQLITE_UTF8);
  return sqlite3_bind_null(statement, place);
}

}  // namespace

void DatabaseFile::CloseDb::operator()(sqlite3* db) const {
  sqlite3_close(db);
}

void DatabaseFile::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

DatabaseFile::DatabaseFile(std::string path, std::string temporary)
    : path_(std::move(path)), temporary_(std::move(temporary)) {}

DatabaseFile::DatabaseFile(DatabaseFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      db_(std::move(other.db_)),
      statements_(std::move(other.statements_)) {}

DatabaseFile::~DatabaseFile() {
  statements_.clear();
  db_.reset();
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::StatusOr<DatabaseFile> DatabaseFile::Create(const std::string& path) {
  const std::string temporary = absl::StrCat(path, ".tmp", getpid());
  unlink(temporary.c_str());  // of a process that had our number
  const UniqueFd fd(
      open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kReadable));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", path));
  DatabaseFile file(path, temporary);
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(temporary.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
  file.db_.reset(db);
  if (code != SQLITE_OK) return file.Error(code);
  // Until it is whole the file is nobody's: it needs no journal, and is synced once, at the end.
  RETURN_IF_ERROR(file.Run("PRAGMA journal_mode = OFF"));
  RETURN_IF_ERROR(file.Run("PRAGMA synchronous = OFF"));
  RETURN_IF_ERROR(file.Run("BEGIN"));
  return file;
}

absl::StatusOr<sqlite3_stmt*> DatabaseFile::Prepared(const std::string& sql) {
  Statement& statement = statements_[sql];
  if (statement == nullptr) {
    sqlite3_stmt* prepared = nullptr;
    const int code = sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &prepared, nullptr);
    if (code != SQLITE_OK) return Error(code);
    statement.reset(prepared);
  }
  return statement.get();
}

absl::Status DatabaseFile::Run(const std::string& sql, std::span<const DatabaseValue> values) {
  ASSIGN_OR_RETURN(sqlite3_stmt* const statement, Prepared(sql));
  int place = 0;
  for (const DatabaseValue& value : values)
    if (const int code = BindValue(statement, ++place, value); code != SQLITE_OK)
      return Error(code);
  int code = sqlite3_step(statement);
  while (code == SQLITE_ROW)  // a PRAGMA tells what it has set
    code = sqlite3_step(statement);
  sqlite3_reset(statement);
  return code == SQLITE_DONE ? absl::OkStatus() : Error(code);
}

absl::Status DatabaseFile::Finish() {
  RETURN_IF_ERROR(Run("COMMIT"));
  statements_.clear();
  const int code = sqlite3_close(db_.get());
  if (code != SQLITE_OK) return Error(code);
  db_.release();  // NOLINT(bugprone-unused-return-value): it is closed
  RETURN_IF_ERROR(RenameSynced(temporary_, path_));
  temporary_.clear();
  return absl::OkStatus();
}

absl::Status DatabaseFile::Error(int code) const {
  const std::string what =
      absl::StrCat("cannot write ", path_, ": ",
                   db_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db_.get()));
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(absl::StrCat(what, "; free some space"));
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
      return absl::InvalidArgumentError(what);
    default:
      return absl::UnknownError(what);
  }
}

std::string SqlName(const std::string& name) {
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

}  // namespace assay
