#include "server/store/backup_restore.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

#include "common/sha256.h"
#include "common/status.h"
#include "server/store/artifacts.h"
#include "server/store/checked_vfs.h"
#include "server/store/data_directory.h"
#include "server/store/prune.h"
#include "server/store/sqlite.h"
#include "server/store/store.h"

namespace assay::store {
namespace {

constexpr char kSelectArtifactsOfBackup[] =
    "SELECT sha256, MIN(id), run_id, file_name, size_bytes FROM artifacts GROUP BY sha256";
constexpr char kCountArtifactsOfBackup[] = "SELECT COUNT(DISTINCT sha256) FROM artifacts";
constexpr char kLostAndFound[] = "lost+found";

// What is wrong with `name` of a backup, compared with the digest that backup.json has of it.
std::vector<core::StoredFault> FaultsOfFile(const std::string& directory, const std::string& name,
                                            const std::string& sha256) {
  const absl::StatusOr<std::string> digest = Sha256HexOfFile(JoinPath(directory, name));
  if (!digest.ok()) return {{name, "the whole file", std::string(digest.status().message())}};
  if (*digest == sha256) return {};
  return {{name, "the whole file",
           absl::StrCat("its bytes have changed: their digest is ", *digest, ", not ", sha256)}};
}

absl::Status CheckIsEmpty(const std::string& directory) {
  if (!FileExists(directory)) {
    if (mkdir(directory.c_str(), kPrivateDirectory) == 0) return absl::OkStatus();
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", directory));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    if (name == kLostAndFound) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " is not empty, it has ", name,
                     ": nothing is overwritten; give an empty or a new directory"));
  }
  return absl::OkStatus();
}

// One restoration.
class Restoration {
 public:
  Restoration(std::string backup, BackupManifest manifest, const DataDirectory* data)
      : backup_(std::move(backup)), manifest_(std::move(manifest)), data_(data) {}

  // First: a daemon does not make a new database where there is one.
  absl::Status CopySecret();
  absl::Status CopyDatabase();
  absl::Status CopyArtifacts(absl::FunctionRef<void(const core::StoredFault&)> found,
                             absl::FunctionRef<void(const core::BackupCounts&)> progress);
  // From here on a daemon starts with it.
  absl::Status Complete();
  const core::BackupCounts& counts() const { return counts_; }

 private:
  std::string PartialPath() const { return data_->database_path() + ".partial"; }

  const std::string backup_;
  const BackupManifest manifest_;
  const DataDirectory* const data_;
  core::BackupCounts counts_;
};

absl::Status Restoration::CopySecret() {
  ASSIGN_OR_RETURN(const std::string secret, ReadFile(JoinPath(backup_, "secret")));
  return WriteFileAtomic(JoinPath(data_->path(), "secret"), secret, kPrivateFile);
}

absl::Status Restoration::CopyDatabase() {
  std::error_code error;
  std::filesystem::copy_file(JoinPath(backup_, manifest_.database), PartialPath(), error);
  if (error) return absl::ErrnoToStatus(error.value(), PartialPath());
  RETURN_IF_ERROR(MakeEntryPrivate(PartialPath()).status());
  ASSIGN_OR_RETURN(const std::string digest, Sha256HexOfFile(PartialPath()));
  if (digest != manifest_.database_sha256)
    return absl::DataLossError(
        absl::StrCat("the copy of ", manifest_.database, " differs from it"));
  counts_.event_seq = manifest_.event_seq;
  counts_.page_count = manifest_.database_bytes / kPageBytes;
  counts_.copied_page_count = counts_.page_count;
  return absl::OkStatus();
}

absl::Status Restoration::CopyArtifacts(
    absl::FunctionRef<void(const core::StoredFault&)> found,
    absl::FunctionRef<void(const core::BackupCounts&)> progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactStore> to,
                   ArtifactStore::Open(data_->artifacts_path()));
  const auto from = ArtifactStore::View(JoinPath(backup_, "artifacts"));
  ASSIGN_OR_RETURN(Db db, Db::Open(PartialPath(), OpenMode::kReadOnly));
  ASSIGN_OR_RETURN(counts_.artifact_count, db.QueryInt(kCountArtifactsOfBackup));
  ASSIGN_OR_RETURN(const std::set<std::string> pruned, ReadPruned(&db));
  ASSIGN_OR_RETURN(Stmt select, db.Prepare(kSelectArtifactsOfBackup));
  while (true) {
    ASSIGN_OR_RETURN(const bool is_row, select.Step());
    if (!is_row) return to->Sync();
    const core::ArtifactRef artifact = {.file_name = std::string(select.Text(3)),
                                        .sha256 = std::string(select.Text(0)),
                                        .size_bytes = select.Int(4)};
    if (pruned.contains(artifact.sha256) && !from->Has(artifact.sha256)) {
      --counts_.artifact_count;
      continue;
    }
    ASSIGN_OR_RETURN(std::string problem,
                     CopyArtifact(JoinPath(backup_, "artifacts"), artifact, to.get()));
    if (problem.empty()) {
      ++counts_.copied_artifact_count;
      counts_.artifact_bytes += artifact.size_bytes;
    } else {
      found({from->FileOf(artifact.sha256), NameOfArtifact(artifact, core::RunId{select.Int(2)}),
             std::move(problem)});
    }
    progress(counts_);
  }
}

absl::Status Restoration::Complete() {
  RETURN_IF_ERROR(MarkFile::Open(MarkPath(data_->database_path()), MarkOf(manifest_)).status());
  return RenameSynced(PartialPath(), data_->database_path());
}

}  // namespace

// ------------------------------------------------------------------------------- verification

const core::VerifyCounts& BackupVerifier::counts() const {
  static const core::VerifyCounts none;
  return verifier_ == nullptr ? none : verifier_->counts();
}

std::vector<core::StoredFault> BackupVerifier::Begin() {
  const auto give_up = [this](absl::string_view file,
                              const absl::Status& status) -> std::vector<core::StoredFault> {
    is_done_ = true;
    return {{std::string(file), "the whole file", std::string(status.message())}};
  };
  absl::StatusOr<UniqueFd> locked = LockToRead(directory_);
  if (!locked.ok()) return give_up("lock", locked.status());
  lock_ = *std::move(locked);
  const absl::StatusOr<BackupManifest> manifest = ReadManifest(directory_);
  if (!manifest.ok()) return give_up(kManifestName, manifest.status());
  std::vector<core::StoredFault> faults =
      FaultsOfFile(directory_, "secret", manifest->secret_sha256);
  for (core::StoredFault& fault :
       FaultsOfFile(directory_, manifest->database, manifest->database_sha256))
    faults.push_back(std::move(fault));
  verifier_ = std::make_unique<Verifier>(
      VerifiedCopy{directory_, manifest->database, MarkOf(*manifest), kManifestName},
      std::move(verdicts_));
  return faults;
}

std::vector<core::StoredFault> BackupVerifier::Step() {
  if (is_done_) return {};
  if (verifier_ == nullptr) return Begin();
  std::vector<core::StoredFault> faults = verifier_->Step();
  is_done_ = verifier_->is_done();
  return faults;
}

// ------------------------------------------------------------------------------------ restoring

absl::StatusOr<core::BackupCounts> RestoreBackup(
    const std::string& backup, const std::string& directory,
    absl::FunctionRef<void(const core::StoredFault&)> found,
    absl::FunctionRef<void(const core::BackupCounts&)> progress) {
  ASSIGN_OR_RETURN(const UniqueFd lock, LockToRead(backup));
  ASSIGN_OR_RETURN(BackupManifest manifest, ReadManifest(backup));
  if (!FaultsOfFile(backup, "secret", manifest.secret_sha256).empty() ||
      !FaultsOfFile(backup, manifest.database, manifest.database_sha256).empty()) {
    BackupVerifier verifier(backup);
    RunToEnd(&verifier, found);
    return absl::DataLossError(
        absl::StrCat("the backup in ", backup, " is damaged: nothing was restored"));
  }
  RETURN_IF_ERROR(CheckIsEmpty(directory));
  ASSIGN_OR_RETURN(const DataDirectory data, DataDirectory::Open(directory));
  absl::Cleanup leave_nothing = [&directory] {
    for (const std::string& name : ListDirectory(directory).value_or(std::vector<std::string>()))
      if (name != kLostAndFound) RemoveTree(JoinPath(directory, name)).IgnoreError();
  };
  Restoration restoration(backup, std::move(manifest), &data);
  RETURN_IF_ERROR(restoration.CopySecret());
  RETURN_IF_ERROR(restoration.CopyDatabase());
  RETURN_IF_ERROR(restoration.CopyArtifacts(found, progress));
  RETURN_IF_ERROR(restoration.Complete());
  std::move(leave_nothing).Cancel();
  return restoration.counts();
}

}  // namespace assay::store
