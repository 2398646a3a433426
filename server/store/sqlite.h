// SQLite, as much of it as the store needs: connections, prepared statements, transactions.

#ifndef SERVER_STORE_SQLITE_H_
#define SERVER_STORE_SQLITE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "server/store/mark.h"

struct sqlite3;
struct sqlite3_backup;
struct sqlite3_file;
struct sqlite3_stmt;

namespace assay::store {

// Bytes, to tell them from text.
struct Blob {
  absl::string_view bytes;
};
struct Null {};

// A value of which only the program that runs knows the type.
using SqlValue = std::variant<std::monostate, int64_t, double, std::string>;

// A prepared statement. Bound text and blobs are not copied: they must live until the step is done.
// Movable; not thread-safe; must not outlive its Db.
class Stmt {
 public:
  Stmt() = default;
  explicit Stmt(sqlite3_stmt* stmt) : stmt_(stmt) {}

  // Rewinds, then binds all parameters by position. INTERNAL if there are more than places.
  template <typename... Values>
  absl::Status Bind(const Values&... values) {
    Rewind();
    int place = 0;
    bool is_good = true;
    // Nothing after the first that fails: SQLite tells only of the last.
    ((is_good = is_good && BindOne(++place, values)), ...);
    return is_good ? absl::OkStatus() : Error();
  }

  // The same, of values that a list holds. It must live until the step is done.
  absl::Status BindValues(std::span<const SqlValue> values);

  // Moves to the next row; false at the end, where the statement is rewound.
  absl::StatusOr<bool> Step();

  // Binds and runs a statement that gives no rows.
  template <typename... Values>
  absl::Status Run(const Values&... values) {
    if (absl::Status status = Bind(values...); !status.ok()) return status;
    return StepToEnd();
  }

  // Of the present row, columns from 0. Text and blobs live until the next Step.
  int64_t Int(int column) const;
  absl::string_view Text(int column) const;
  bool IsNull(int column) const;
  double Double(int column) const;
  SqlValue Value(int column) const;
  int column_count() const;

  // Ends a read early, so that it holds no snapshot.
  void Rewind();

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* stmt) const;
  };

  bool BindOne(int place, int64_t value);
  bool BindOne(int place, int32_t value) { return BindOne(place, int64_t{value}); }
  bool BindOne(int place, bool value) { return BindOne(place, int64_t{value}); }
  bool BindOne(int place, absl::string_view value);
  bool BindOne(int place, const std::string& value) {
    return BindOne(place, absl::string_view(value));
  }
  bool BindOne(int place, Blob value);
  bool BindOne(int place, Null);
  bool BindOne(int place, double value);
  bool BindOne(int place, std::optional<int64_t> value) {
    return value.has_value() ? BindOne(place, *value) : BindOne(place, Null{});
  }
  absl::Status StepToEnd();
  absl::Status Error() const;

  std::unique_ptr<sqlite3_stmt, Finalize> stmt_;
};

enum class OpenMode {
  kReadWriteCreate,
  kReadOnly,
  kUnsealed,   // to read and write a database of before page checksums; it has to exist
  kUnchecked,  // to look at a damaged one: read-only, without page checksums, changing nothing
  kCopy,       // a new file that a DbCopy fills: no write-ahead log, and nothing is synced
};

// A connection with our settings: WAL, synchronous=FULL, foreign keys, no double-quoted strings,
// defensive. A database that it makes is the owner's alone, and its pages carry checksums
// (checked_vfs.h). Movable; not thread-safe.
//
// Codes: RESOURCE_EXHAUSTED the disk is full; DATA_LOSS the file is damaged or no database;
// UNAVAILABLE somebody else holds a lock; INTERNAL a constraint or our SQL; else UNKNOWN with
// SQLite's words.
class Db {
 public:
  static absl::StatusOr<Db> Open(const std::string& path, OpenMode mode);

  // One or more statements without parameters, from constants of ours.
  absl::Status Exec(const std::string& sql);
  absl::StatusOr<Stmt> Prepare(absl::string_view sql);

  // The single integer that a statement gives.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql);

  // Runs `body` between BEGIN IMMEDIATE and COMMIT. On any error rolls back and returns it.
  absl::Status Transact(absl::FunctionRef<absl::Status()> body);

  // Writes a copy with page checksums to `path`, an empty file or none.
  absl::Status CopySealed(const std::string& path);

  // The file itself, for reading it past the cache of this connection. Not for writing.
  sqlite3_file* file();

  // Frames in the write-ahead log after the last commit or checkpoint of this connection.
  int64_t wal_frames() const { return *wal_frames_; }

  // Those frames, and how to know the log that they are in. After a commit of this connection.
  WalExtent wal_extent();

  // Copies what the write-ahead log holds into the database, as far as readers allow, without
  // keeping a writer out.
  absl::Status Checkpoint();

  // Frames that the last Checkpoint has left: those that were committed meanwhile, or that a reader
  // still needs.
  int64_t uncopied_frames() const { return uncopied_frames_; }

  // While a statement of this connection runs, asks `is_over` every few thousand of its steps, some
  // times a millisecond; once it says yes, the statement ends with DEADLINE_EXCEEDED.
  void EndWhen(absl::AnyInvocable<bool()> is_over);

  // Refuses values and rows of more than `bytes` with INVALID_ARGUMENT.
  void LimitRowBytes(int bytes);

 private:
  friend class DbCopy;
  struct Close {
    void operator()(sqlite3* db) const;
  };

  absl::Status Configure(OpenMode mode);

  int64_t uncopied_frames_ = std::numeric_limits<int64_t>::max();
  std::string wal_path_;
  UniqueFd wal_;  // opened at need; SQLite has no locks on it that closing it would drop
  std::unique_ptr<int64_t> wal_frames_ = std::make_unique<int64_t>(0);
  std::unique_ptr<absl::AnyInvocable<bool()>> is_over_;
  std::unique_ptr<sqlite3, Close> db_;
};

// A copy of a database, made page by page while others write to it (SQLite's online backup). Both
// connections must outlive it. Movable; not thread-safe. Errors as Db's; DATA_LOSS also names the
// page of the source that is damaged.
class DbCopy {
 public:
  // `source` should be in a transaction that has read: the copy is then of what that sees. Else it
  // begins anew whenever somebody commits. `target` was opened with OpenMode::kCopy.
  static absl::StatusOr<DbCopy> Begin(Db* source, Db* target);

  // Copies up to `page_count` further pages; true once all are there.
  absl::StatusOr<bool> Step(int page_count);

  // Known after the first step.
  int64_t page_count() const;
  int64_t copied_page_count() const;

  // Makes the target a database that has no write-ahead log and needs none to be read. Once, after
  // the last step.
  absl::Status Finish();

 private:
  struct End {
    void operator()(sqlite3_backup* backup) const;
  };
  DbCopy(Db* target, sqlite3_backup* backup) : target_(target), backup_(backup) {}

  Db* target_;
  std::unique_ptr<sqlite3_backup, End> backup_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_SQLITE_H_
