#include "server/store/backup.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/core/id.h"
#include "server/store/artifacts.h"
#include "server/store/backup_directory.h"
#include "server/store/head.h"
#include "server/store/prune.h"
#include "server/store/sqlite.h"

namespace assay::store {
namespace {

constexpr int kPagesOfCopyStep = 4096;  // 16 MiB
constexpr int64_t kArtifactsOfCopyStep = 1000;
constexpr int64_t kBytesOfCopyStep = 16 << 20;

constexpr char kCountNamedArtifacts[] = "SELECT COUNT(DISTINCT sha256) FROM artifacts";
// Each once, as the first run that has it names it.
constexpr char kSelectNamedArtifacts[] =
    "SELECT sha256, MIN(id), run_id, file_name, size_bytes FROM artifacts WHERE sha256 > ?1 "
    "GROUP BY sha256 ORDER BY sha256 LIMIT ?2";
constexpr char kSelectChainOfBackup[] = "SELECT chain FROM events WHERE seq = ?1";

bool IsBelow(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto [of_folder, of_path] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return of_folder == folder.end();
}

absl::Status CheckPlace(const BackupOptions& options) {
  const std::filesystem::path directory = options.directory;
  if (!directory.is_absolute()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the directory of a backup is \"", options.directory,
                     "\": give an absolute path on the coordinator's host"));
  }
  std::error_code error;
  const auto data = std::filesystem::weakly_canonical(options.data_directory, error);
  if (error) return absl::ErrnoToStatus(error.value(), options.data_directory);
  const auto place = std::filesystem::weakly_canonical(directory, error);
  if (error) return absl::ErrnoToStatus(error.value(), options.directory);
  if (!IsBelow(place, data) && !IsBelow(data, place)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the directory of a backup, ", options.directory, ", and the data directory, ",
                   options.data_directory, ", are one in the other: choose another"));
}

absl::Status MakePlace(const std::string& directory) {
  if (mkdir(directory.c_str(), kPrivateDirectory) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", directory));
}

bool IsDatabaseOfBackup(absl::string_view name) {
  return absl::StartsWith(name, "assay-") && absl::StrContains(name, ".db");
}

// What is in the directory must be a backup, or what an interrupted one has left.
absl::Status CheckEntries(const std::string& directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool is_ours = name == kManifestName || name == "lock" || name == "artifacts" ||
                         name == "secret" || absl::StartsWith(name, "secret.tmp") ||
                         absl::StartsWith(name, absl::StrCat(kManifestName, ".tmp")) ||
                         IsDatabaseOfBackup(name);
    if (is_ours || name == "lost+found") continue;
    return absl::FailedPreconditionError(absl::StrCat(
        directory, " has ", name, ", which is no part of a backup: give a directory of its own"));
  }
  return absl::OkStatus();
}

// Databases of backups that were interrupted, and of those before; not the one of the backup that
// is there. Which that is cannot be known while backup.json is damaged.
absl::Status RemoveOtherDatabases(const std::string& directory) {
  const absl::StatusOr<BackupManifest> manifest = ReadManifest(directory);
  if (!manifest.ok() && !absl::IsNotFound(manifest.status())) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    if (IsDatabaseOfBackup(name) && (!manifest.ok() || name != manifest->database))
      RETURN_IF_ERROR(RemoveTree(JoinPath(directory, name)));
  }
  return RemoveTemporaryFiles(directory).status();
}

int64_t PresentCount(const core::BackupCounts& counts) {
  return counts.linked_artifact_count + counts.copied_artifact_count + counts.kept_artifact_count;
}

absl::Status OtherHistory(const std::string& directory, const BackupManifest& previous) {
  return absl::FailedPreconditionError(absl::StrCat(
      directory, " holds a backup with event ", previous.event_seq, " of ", previous.time,
      ", which this coordinator does not have: it is another one's, or this one has lost events. "
      "Take another directory, and keep that backup until you know why"));
}

}  // namespace

// In order; each phase is repeated until it moves on.
enum class BackupPhase { kOpen, kDatabase, kNames, kArtifacts, kManifest, kDone };

struct Backup::Work {
  explicit Work(BackupOptions given) : options(std::move(given)) {}
  ~Work() { LetGo(); }

  std::string Path(const std::string& name) const { return JoinPath(options.directory, name); }
  // Ends it, and removes what an unfinished one has written.
  void LetGo();
  absl::Status Step();
  absl::Status TakePlace();
  absl::Status Open();
  absl::Status CheckPrevious();
  absl::Status CopyDatabase();
  absl::Status ReadNames();
  absl::Status CopyArtifacts();
  absl::Status PutArtifact(const Stmt& row);
  absl::Status Fill(const core::ArtifactRef& artifact, const std::string& object);
  void CompressKept(const core::ArtifactRef& artifact);
  absl::Status WriteManifest();

  const BackupOptions options;
  BackupPhase phase = BackupPhase::kOpen;
  absl::Status failure;
  core::BackupCounts counts;
  std::vector<core::StoredFault> faults;  // of this step
  UniqueFd lock;

  std::string database;  // the new one's name
  Head head;
  std::optional<Db> source;
  std::optional<Db> target;
  std::optional<DbCopy> copy;  // after what it copies from and to

  std::optional<Db> names;       // the copy, to be asked for its artifacts
  std::set<std::string> pruned;  // digests that need not be there
  std::unique_ptr<const ArtifactStore> from;
  std::unique_ptr<ArtifactStore> to;
  std::string last_sha256;
  bool can_link = true;
  int64_t step_bytes = 0;
};

Backup::Backup(BackupOptions options) : work_(std::make_unique<Work>(std::move(options))) {}
Backup::~Backup() = default;

absl::StatusOr<std::vector<core::StoredFault>> Backup::Step() {
  if (work_->failure.ok()) work_->failure = work_->Step();
  if (!work_->failure.ok() || is_done()) work_->LetGo();
  RETURN_IF_ERROR(work_->failure);
  return std::exchange(work_->faults, {});
}

bool Backup::is_done() const {
  return work_->phase == BackupPhase::kDone;
}

const core::BackupCounts& Backup::counts() const {
  return work_->counts;
}

void Backup::Work::LetGo() {
  copy.reset();
  target.reset();
  source.reset();
  names.reset();
  if (lock.is_open() && !database.empty() && phase != BackupPhase::kDone)
    RemoveOtherDatabases(options.directory).IgnoreError();  // the next backup does, too
  lock.Reset();
}

absl::Status Backup::Work::Step() {
  switch (phase) {
    case BackupPhase::kOpen:
      return Open();
    case BackupPhase::kDatabase:
      return CopyDatabase();
    case BackupPhase::kNames:
      return ReadNames();
    case BackupPhase::kArtifacts:
      return CopyArtifacts();
    case BackupPhase::kManifest:
      return WriteManifest();
    case BackupPhase::kDone:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Backup::Work::TakePlace() {
  RETURN_IF_ERROR(MakePlace(options.directory));
  ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(options.directory));
  RETURN_IF_ERROR(CheckEntries(options.directory, entries));
  ASSIGN_OR_RETURN(lock, LockToWrite(options.directory));
  return absl::OkStatus();
}

absl::Status Backup::Work::Open() {
  RETURN_IF_ERROR(CheckPlace(options));
  const absl::Status taken = TakePlace();
  if (absl::IsPermissionDenied(taken)) {
    return absl::PermissionDeniedError(
        absl::StrCat(taken.message(),
                     "; the coordinator's account has to be able to write there, and under systemd "
                     "ReadWritePaths= of its unit has to name it"));
  }
  RETURN_IF_ERROR(taken);
  ASSIGN_OR_RETURN(source,
                   Db::Open(JoinPath(options.data_directory, "assay.db"), OpenMode::kReadOnly));
  ASSIGN_OR_RETURN(const MarkReading acknowledged,
                   ReadMark(JoinPath(options.data_directory, "mark")));
  RETURN_IF_ERROR(source->Exec("BEGIN"));
  ASSIGN_OR_RETURN(head, ReadHead(&*source));
  if (acknowledged.mark.has_value() && head.mark.seq < acknowledged.mark->seq) {
    return absl::DataLossError(absl::StrCat("events ", head.mark.seq + 1, " to ",
                                            acknowledged.mark->seq,
                                            " were acknowledged and are missing from assay.db"));
  }
  counts.event_seq = head.mark.seq;
  RETURN_IF_ERROR(CheckPrevious());
  RETURN_IF_ERROR(RemoveOtherDatabases(options.directory));
  database = absl::StrCat("assay-",
                          absl::FormatTime("%Y%m%dT%H%M%E6SZ", absl::FromUnixMicros(options.now_us),
                                           absl::UTCTimeZone()),
                          ".db");
  ASSIGN_OR_RETURN(target, Db::Open(Path(database + ".partial"), OpenMode::kCopy));
  ASSIGN_OR_RETURN(copy, DbCopy::Begin(&*source, &*target));
  phase = BackupPhase::kDatabase;
  return absl::OkStatus();
}

// A backup that knows more than this coordinator is not thrown away.
absl::Status Backup::Work::CheckPrevious() {
  const absl::StatusOr<BackupManifest> previous = ReadManifest(options.directory);
  if (absl::IsNotFound(previous.status())) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(previous.status(), "not overwritten; take another directory"));
  if (previous->identity != head.mark.identity) return OtherHistory(options.directory, *previous);
  if (previous->event_seq == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(Stmt select, source->Prepare(kSelectChainOfBackup));
  RETURN_IF_ERROR(select.Bind(previous->event_seq));
  ASSIGN_OR_RETURN(const bool is_row, select.Step());
  if (is_row && absl::BytesToHexString(select.Text(0)) == previous->chain) return absl::OkStatus();
  return OtherHistory(options.directory, *previous);
}

absl::Status Backup::Work::CopyDatabase() {
  ASSIGN_OR_RETURN(const bool is_whole, copy->Step(kPagesOfCopyStep));
  counts.page_count = copy->page_count();
  counts.copied_page_count = copy->copied_page_count();
  if (!is_whole) return absl::OkStatus();
  RETURN_IF_ERROR(copy->Finish());
  copy.reset();
  target.reset();
  source.reset();  // and with it the transaction: the write-ahead log may begin anew
  phase = BackupPhase::kNames;
  return absl::OkStatus();
}

absl::Status Backup::Work::ReadNames() {
  ASSIGN_OR_RETURN(names, Db::Open(Path(database + ".partial"), OpenMode::kReadOnly));
  ASSIGN_OR_RETURN(counts.artifact_count, names->QueryInt(kCountNamedArtifacts));
  ASSIGN_OR_RETURN(pruned, ReadPruned(&*names));
  from = ArtifactStore::View(JoinPath(options.data_directory, "artifacts"));
  ASSIGN_OR_RETURN(to, ArtifactStore::Open(Path("artifacts")));
  phase = BackupPhase::kArtifacts;
  return absl::OkStatus();
}

absl::Status Backup::Work::CopyArtifacts() {
  ASSIGN_OR_RETURN(Stmt select, names->Prepare(kSelectNamedArtifacts));
  RETURN_IF_ERROR(select.Bind(last_sha256, kArtifactsOfCopyStep));
  int64_t row_count = 0;
  step_bytes = 0;
  while (step_bytes < kBytesOfCopyStep) {
    ASSIGN_OR_RETURN(const bool is_row, select.Step());
    if (!is_row && row_count < kArtifactsOfCopyStep) phase = BackupPhase::kManifest;
    if (!is_row) return absl::OkStatus();
    ++row_count;
    RETURN_IF_ERROR(PutArtifact(select));
  }
  return absl::OkStatus();
}

absl::Status Backup::Work::PutArtifact(const Stmt& row) {
  last_sha256 = std::string(row.Text(0));
  const core::ArtifactRef artifact = {
      .file_name = std::string(row.Text(3)), .sha256 = last_sha256, .size_bytes = row.Int(4)};
  const std::string object = NameOfArtifact(artifact, core::RunId{row.Int(2)});
  if (pruned.contains(last_sha256) && !from->Has(last_sha256)) {
    --counts.artifact_count;
    return absl::OkStatus();
  }
  const int64_t before = PresentCount(counts);
  if (to->SizeOf(artifact.sha256) == absl::StatusOr<int64_t>(artifact.size_bytes)) {
    ++counts.kept_artifact_count;
    CompressKept(artifact);
  } else {
    RETURN_IF_ERROR(Fill(artifact, object));
  }
  if (PresentCount(counts) > before) counts.artifact_bytes += artifact.size_bytes;
  return absl::OkStatus();
}

// What the coordinator has compressed since the last backup need not take more room here. Where
// that fails it stays as it is; one that is damaged is for `verify` to name.
void Backup::Work::CompressKept(const core::ArtifactRef& artifact) {
  if (!from->IsCompressed(artifact.sha256) || to->IsCompressed(artifact.sha256)) return;
  step_bytes += artifact.size_bytes;
  to->Compress(artifact.sha256).status().IgnoreError();
}

absl::Status Backup::Work::Fill(const core::ArtifactRef& artifact, const std::string& object) {
  const std::string root = JoinPath(options.data_directory, "artifacts");
  const absl::StatusOr<int64_t> size = from->SizeOf(artifact.sha256);
  if (can_link && size.ok() && *size == artifact.size_bytes) {
    ASSIGN_OR_RETURN(can_link, to->Link(artifact.sha256, root));
    if (can_link) {
      ++counts.linked_artifact_count;
      return absl::OkStatus();
    }
  }
  step_bytes += artifact.size_bytes;
  ASSIGN_OR_RETURN(std::string problem, CopyArtifact(root, artifact, to.get()));
  if (problem.empty())
    ++counts.copied_artifact_count;
  else
    faults.push_back({from->FileOf(artifact.sha256), object, std::move(problem)});
  return absl::OkStatus();
}

absl::Status Backup::Work::WriteManifest() {
  names.reset();
  RETURN_IF_ERROR(to->Sync());
  RETURN_IF_ERROR(RenameSynced(Path(database + ".partial"), Path(database)));
  ASSIGN_OR_RETURN(const std::string secret, ReadFile(JoinPath(options.data_directory, "secret")));
  RETURN_IF_ERROR(WriteFileAtomic(Path("secret"), secret, kPrivateFile));
  const Mark& mark = head.mark;
  BackupManifest manifest = {
      .version = options.version,
      .time = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMicros(options.now_us),
                               absl::UTCTimeZone()),
      .event_seq = mark.seq,
      .identity = mark.identity,
      .chain = absl::BytesToHexString(mark.chain),
      .last_submission = mark.last_submission,
      .last_run = mark.last_run,
      .last_token = mark.last_token,
      .database = database,
      .secret_sha256 = Sha256Hex(secret),
      .artifact_count = PresentCount(counts),
      .artifact_bytes = counts.artifact_bytes};
  ASSIGN_OR_RETURN(manifest.database_bytes, FileSize(Path(database)));
  ASSIGN_OR_RETURN(manifest.database_sha256, Sha256HexOfFile(Path(database)));
  RETURN_IF_ERROR(WriteFileAtomic(Path(kManifestName), PrintManifest(manifest), kPrivateFile));
  phase = BackupPhase::kDone;
  return RemoveOtherDatabases(options.directory);
}

}  // namespace assay::store
