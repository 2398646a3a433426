#include "server/store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iterator>
#include <type_traits>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "server/store/checked_vfs.h"

namespace assay::store {
namespace {

// Long enough for a checkpoint or a backup on another connection to let go.
constexpr int kBusyTimeoutMs = 5000;

absl::Status ToStatus(sqlite3* db, int code) {
  const std::string text = absl::StrCat(
      "SQLite: ", db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db), " (", code, ")");
  if (code == SQLITE_IOERR_DATA) return absl::DataLossError(TakePageFault());
  switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_DONE:
    case SQLITE_ROW:
      return absl::OkStatus();
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(text, "; make room on the disk, then retry"));
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(absl::StrCat(text, "; give it more memory, then retry"));
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
      return absl::InvalidArgumentError(text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(text);
    case SQLITE_INTERRUPT:
      return absl::DeadlineExceededError(text);
    case SQLITE_CONSTRAINT:
    case SQLITE_RANGE:
    case SQLITE_MISUSE:
    case SQLITE_ERROR:
      return absl::InternalError(text);
    default:
      return absl::UnknownError(text);
  }
}

int OnCommit(void* frames, sqlite3*, const char*, int frame_count) {
  *static_cast<int64_t*>(frames) = frame_count;
  return SQLITE_OK;
}

// As a URI has it: what would end or change the path is written as %xx.
std::string UriPath(absl::string_view path) {
  std::string uri;
  for (const char c : path) {
    if (c == '?' || c == '#' || c == '%')
      absl::StrAppend(&uri, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    else
      uri.push_back(c);
  }
  return uri;
}

int FlagsOf(OpenMode mode) {
  switch (mode) {
    case OpenMode::kReadWriteCreate:
    case OpenMode::kCopy:
      return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case OpenMode::kUnsealed:
      return SQLITE_OPEN_READWRITE;
    case OpenMode::kReadOnly:
    case OpenMode::kUnchecked:
      return SQLITE_OPEN_READONLY;
  }
  return SQLITE_OPEN_READONLY;
}

absl::Status Reserve(sqlite3* db) {
  int reserve = kPageReserveBytes;
  return ToStatus(db, sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve));
}

// SQLite gives the write-ahead log and its index the permissions of the database. A database that
// exists is not touched: closing any descriptor of it would drop the locks of this process.
absl::Status CreatePrivate(const std::string& path) {
  if (FileExists(path)) return absl::OkStatus();
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open() && errno != EEXIST) return absl::ErrnoToStatus(errno, path);
  return absl::OkStatus();
}

}  // namespace

// ------------------------------------------------------------------------------------- statements

void Stmt::Finalize::operator()(sqlite3_stmt* stmt) const {
  sqlite3_finalize(stmt);
}

void Stmt::Rewind() {
  sqlite3_reset(stmt_.get());  // repeats the error of the last step, which was reported
}

absl::Status Stmt::Error() const {
  sqlite3* db = sqlite3_db_handle(stmt_.get());
  return ToStatus(db, sqlite3_extended_errcode(db));
}

absl::StatusOr<bool> Stmt::Step() {
  const int code = sqlite3_step(stmt_.get());
  if (code == SQLITE_ROW) return true;
  absl::Status status = code == SQLITE_DONE ? absl::OkStatus() : Error();
  Rewind();
  RETURN_IF_ERROR(status);
  return false;
}

absl::Status Stmt::StepToEnd() {
  const absl::StatusOr<bool> row = Step();
  Rewind();
  return row.status();
}

bool Stmt::BindOne(int place, int64_t value) {
  return sqlite3_bind_int64(stmt_.get(), place, value) == SQLITE_OK;
}

bool Stmt::BindOne(int place, absl::string_view value) {
  // A null pointer would bind NULL.
  const char* text = value.data() == nullptr ? "" : value.data();
  return sqlite3_bind_text64(stmt_.get(), place, text, value.size(), nullptr, SQLITE_UTF8) ==
         SQLITE_OK;
}

bool Stmt::BindOne(int place, Blob value) {
  const char* bytes = value.bytes.data() == nullptr ? "" : value.bytes.data();
  return sqlite3_bind_blob64(stmt_.get(), place, bytes, value.bytes.size(), nullptr) == SQLITE_OK;
}

bool Stmt::BindOne(int place, Null) {
  return sqlite3_bind_null(stmt_.get(), place) == SQLITE_OK;
}

bool Stmt::BindOne(int place, double value) {
  return sqlite3_bind_double(stmt_.get(), place, value) == SQLITE_OK;
}

absl::Status Stmt::BindValues(std::span<const SqlValue> values) {
  Rewind();
  int place = 0;
  for (const SqlValue& value : values) {
    ++place;
    const bool is_good = std::visit(
        [&](const auto& v) {
          if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
            return BindOne(place, Null{});
          else
            return BindOne(place, v);
        },
        value);
    if (!is_good) return Error();
  }
  return absl::OkStatus();
}

double Stmt::Double(int column) const {
  return sqlite3_column_double(stmt_.get(), column);
}

SqlValue Stmt::Value(int column) const {
  switch (sqlite3_column_type(stmt_.get(), column)) {
    case SQLITE_INTEGER:
      return Int(column);
    case SQLITE_FLOAT:
      return Double(column);
    case SQLITE_NULL:
      return {};
    default:
      return std::string(Text(column));
  }
}

int Stmt::column_count() const {
  return sqlite3_column_count(stmt_.get());
}

int64_t Stmt::Int(int column) const {
  return sqlite3_column_int64(stmt_.get(), column);
}

absl::string_view Stmt::Text(int column) const {
  const void* bytes = sqlite3_column_blob(stmt_.get(), column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(stmt_.get(), column));
  return bytes == nullptr ? absl::string_view()
                          : absl::string_view(static_cast<const char*>(bytes), size);
}

bool Stmt::IsNull(int column) const {
  return sqlite3_column_type(stmt_.get(), column) == SQLITE_NULL;
}

// ------------------------------------------------------------------------------------ connections

void Db::Close::operator()(sqlite3* db) const {
  sqlite3_close_v2(db);
}

absl::StatusOr<Db> Db::Open(const std::string& path, OpenMode mode) {
  if (mode == OpenMode::kReadWriteCreate || mode == OpenMode::kCopy)
    RETURN_IF_ERROR(CreatePrivate(path));
  const bool is_checked = mode != OpenMode::kUnsealed && mode != OpenMode::kUnchecked;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle,
                                   FlagsOf(mode) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                                   is_checked ? CheckedVfs() : nullptr);
  Db db;
  db.db_.reset(handle);
  db.wal_path_ = path + "-wal";
  if (code != SQLITE_OK) return Annotate(ToStatus(handle, code), path);
  if (absl::Status status = db.Configure(mode); !status.ok()) return Annotate(status, path);
  return db;
}

absl::Status Db::Configure(OpenMode mode) {
  sqlite3* db = db_.get();
  sqlite3_busy_timeout(db, kBusyTimeoutMs);
  // Variadic: the value, and where to put the new setting.
  for (const int option : {SQLITE_DBCONFIG_DQS_DDL, SQLITE_DBCONFIG_DQS_DML}) {
    if (const int code = sqlite3_db_config(db, option, 0, nullptr); code != SQLITE_OK)
      return ToStatus(db, code);
  }
  if (const int code = sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
      code != SQLITE_OK)
    return ToStatus(db, code);
  RETURN_IF_ERROR(
      Exec("PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON;"
           "PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;"));
  if (mode == OpenMode::kReadOnly) return Exec("PRAGMA query_only = ON;");
  // The log that a crash has left stays what it is.
  if (mode == OpenMode::kUnchecked)
    return ToStatus(db, sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr));
  if (mode == OpenMode::kUnsealed) return absl::OkStatus();
  RETURN_IF_ERROR(Reserve(db));
  // A copy that stops half-way is thrown away.
  if (mode == OpenMode::kCopy)
    return Exec("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;");
  // Checkpoints are made by their own connection, off the commit path.
  RETURN_IF_ERROR(Exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"));
  sqlite3_wal_hook(db, OnCommit, wal_frames_.get());
  return absl::OkStatus();
}

absl::Status Db::Exec(const std::string& sql) {
  return ToStatus(db_.get(), sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

absl::StatusOr<Stmt> Db::Prepare(absl::string_view sql) {
  sqlite3_stmt* stmt = nullptr;
  const int code = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &stmt, nullptr);
  if (code != SQLITE_OK) return Annotate(ToStatus(db_.get(), code), sql);
  return Stmt(stmt);
}

absl::StatusOr<int64_t> Db::QueryInt(absl::string_view sql) {
  ASSIGN_OR_RETURN(Stmt stmt, Prepare(sql));
  ASSIGN_OR_RETURN(const bool is_row, stmt.Step());
  if (!is_row) return absl::InternalError(absl::StrCat("no row: ", sql));
  return stmt.Int(0);
}

absl::Status Db::Transact(absl::FunctionRef<absl::Status()> body) {
  RETURN_IF_ERROR(Exec("BEGIN IMMEDIATE"));
  absl::Status status = body();
  if (status.ok()) status = Exec("COMMIT");
  // After some errors, a full disk among them, SQLite has rolled back by itself.
  if (!status.ok() && sqlite3_get_autocommit(db_.get()) == 0) CHECK_OK(Exec("ROLLBACK"));
  return status;
}

void Db::EndWhen(absl::AnyInvocable<bool()> is_over) {
  constexpr int kStepsBetween = 4000;  // of SQLite's machine, some 20 to 100 ns each
  is_over_ = std::make_unique<absl::AnyInvocable<bool()>>(std::move(is_over));
  sqlite3_progress_handler(
      db_.get(), kStepsBetween,
      [](void* asked) { return (*static_cast<absl::AnyInvocable<bool()>*>(asked))() ? 1 : 0; },
      is_over_.get());
}

void Db::LimitRowBytes(int bytes) {
  sqlite3_limit(db_.get(), SQLITE_LIMIT_LENGTH, bytes);
}

absl::Status Db::CopySealed(const std::string& path) {
  RETURN_IF_ERROR(Reserve(db_.get()));
  ASSIGN_OR_RETURN(Stmt vacuum, Prepare("VACUUM INTO ?1"));
  return vacuum.Run(absl::StrCat("file:", UriPath(path), "?vfs=", CheckedVfs()));
}

sqlite3_file* Db::file() {
  sqlite3_file* file = nullptr;
  CHECK(sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK);
  return file;
}

WalExtent Db::wal_extent() {
  if (wal_frames() == 0) return {};
  if (!wal_.is_open()) wal_ = UniqueFd(open(wal_path_.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<unsigned char, 8> salts{};
  constexpr off_t kSaltOffset = 16;
  if (pread(wal_.get(), salts.data(), salts.size(), kSaltOffset) != std::ssize(salts)) return {};
  return {ReadBig32(salts.data()), ReadBig32(salts.data() + 4), wal_frames()};
}

absl::Status Db::Checkpoint() {
  int frames = 0;
  int copied = 0;
  const int code =
      sqlite3_wal_checkpoint_v2(db_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
  if (code == SQLITE_OK && frames >= 0) *wal_frames_ = frames;
  uncopied_frames_ = code == SQLITE_OK ? frames - copied : std::numeric_limits<int64_t>::max();
  return ToStatus(db_.get(), code);
}

// ------------------------------------------------------------------------------------------ copies

void DbCopy::End::operator()(sqlite3_backup* backup) const {
  sqlite3_backup_finish(backup);
}

absl::StatusOr<DbCopy> DbCopy::Begin(Db* source, Db* target) {
  sqlite3* const to = target->db_.get();
  sqlite3_backup* const backup = sqlite3_backup_init(to, "main", source->db_.get(), "main");
  if (backup == nullptr) return ToStatus(to, sqlite3_extended_errcode(to));
  return DbCopy(target, backup);
}

absl::StatusOr<bool> DbCopy::Step(int page_count) {
  const int code = sqlite3_backup_step(backup_.get(), page_count);
  if (code == SQLITE_DONE) return true;
  // The connections are not told of an error until the end.
  if (code != SQLITE_OK) return ToStatus(nullptr, code);
  return false;
}

int64_t DbCopy::page_count() const {
  return sqlite3_backup_pagecount(backup_.get());
}
int64_t DbCopy::copied_page_count() const {
  return page_count() - sqlite3_backup_remaining(backup_.get());
}

absl::Status DbCopy::Finish() {
  const int code = sqlite3_backup_finish(backup_.release());
  if (code != SQLITE_OK) return ToStatus(nullptr, code);
  return target_->Exec("PRAGMA journal_mode = DELETE");
}

}  // namespace assay::store
