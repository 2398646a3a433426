#include "server/store/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/status.h"
#include "server/store/artifacts.h"

namespace assay::store {
namespace {

constexpr char kSecretName[] = "secret";

// f_type of file systems that are shared between hosts: statfs(2) and the kernels' sources.
struct SharedFileSystem {
  int64_t type;
  const char* name;
};
constexpr SharedFileSystem kSharedFileSystems[] = {
    {0x6969, "NFS"},        {0x0bd00bd0, "Lustre"}, {0x00c36400, "CephFS"}, {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"}, {0xff534d42, "CIFS"},   {0xfe534d42, "SMB"},
};

absl::Status CheckFileSystem(const std::string& path) {
  struct statfs info = {};
  if (statfs(path.c_str(), &info) != 0) return absl::ErrnoToStatus(errno, path);
  for (const SharedFileSystem& shared : kSharedFileSystems) {
    if (static_cast<int64_t>(info.f_type) == shared.type)
      return absl::FailedPreconditionError(absl::StrCat(
          "data directory ", path, " is on ", shared.name, "; the database needs a local disk"));
  }
  return absl::OkStatus();
}

// Whether artifacts were uploaded. An empty folder is made before the database.
absl::StatusOr<bool> HasArtifacts(const std::string& path) {
  if (!FileExists(path)) return false;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name != kPartialFolder; });
}

// Room for what a start writes (SQLite's index of the log above all), given back when the disk is
// full: a daemon that does not start cannot even say what is wrong.
constexpr int64_t kBallastBytes = 1 << 20;
// For what a daemon on a full disk writes while it serves.
constexpr int64_t kLeftFreeBytes = 64 << 10;

absl::StatusOr<int64_t> FreeBytes(const std::string& directory) {
  struct statvfs info = {};
  if (statvfs(directory.c_str(), &info) != 0) return absl::ErrnoToStatus(errno, directory);
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

std::string BallastPath(const std::string& directory) {
  return JoinPath(directory, "ballast");
}

absl::Status GiveBallastBack(const std::string& directory) {
  ASSIGN_OR_RETURN(const int64_t free_bytes, FreeBytes(directory));
  if (free_bytes >= kBallastBytes) return absl::OkStatus();
  const std::string path = BallastPath(directory);
  LOG(WARNING) << "the disk is full path=" << directory << ": starting with the room of " << path;
  return RemoveTree(path);
}

// What older programs or other people have left open, and what killed ones have left over.
// The directories of agents that were started here are theirs to care for.
absl::Status TidyUp(const std::string& path) {
  ASSIGN_OR_RETURN(std::vector<std::string> loose, MakePrivate(JoinPath(path, "artifacts")));
  ASSIGN_OR_RETURN(std::vector<std::string> entries, ListDirectory(path));
  for (std::string& entry : entries)
    entry = JoinPath(path, entry);
  entries.push_back(path);
  for (const std::string& entry : entries) {
    ASSIGN_OR_RETURN(const bool was_open, MakeEntryPrivate(entry));
    if (was_open) loose.push_back(entry);
  }
  for (const std::string& entry : loose)
    LOG(WARNING) << "tightened path=" << entry << ": group or others had permissions on it";
  ASSIGN_OR_RETURN(const std::vector<std::string> removed, RemoveTemporaryFiles(path));
  for (const std::string& name : removed)
    LOG(INFO) << "removed temporary file=" << name;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DataDirectory> DataDirectory::Open(const std::string& path) {
  DataDirectory directory;
  directory.path_ = path;
  RETURN_IF_ERROR(MakeDirectories(path, kPrivateDirectory));
  RETURN_IF_ERROR(CheckFileSystem(path));
  const std::string lock_path = JoinPath(path, "lock");
  directory.lock_ = UniqueFd(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kPrivateFile));
  if (!directory.lock_.is_open()) return absl::ErrnoToStatus(errno, lock_path);
  if (flock(directory.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, lock_path);
    return absl::FailedPreconditionError(
        absl::StrCat("data directory ", path, " is in use by another process; stop that first"));
  }
  RETURN_IF_ERROR(TidyUp(path));
  RETURN_IF_ERROR(GiveBallastBack(path));
  ASSIGN_OR_RETURN(const bool has_artifacts, HasArtifacts(directory.artifacts_path()));
  directory.is_database_expected_ = has_artifacts || FileExists(JoinPath(path, kSecretName));
  return directory;
}

void DataDirectory::KeepBallast() const {
  const std::string path = BallastPath(path_);
  const absl::StatusOr<int64_t> free_bytes = FreeBytes(path_);
  if (!free_bytes.ok() || FileExists(path)) return;
  const int64_t bytes = std::min(kBallastBytes, *free_bytes - kLeftFreeBytes);
  if (bytes <= 0) return;
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open() || posix_fallocate(fd.get(), 0, bytes) != 0)
    LOG(WARNING) << "cannot keep room for the next start path=" << path;
}

absl::StatusOr<std::string> DataDirectory::Secret() const {
  const std::string path = JoinPath(path_, kSecretName);
  if (FileExists(path)) return ReadFile(path);
  std::string bytes(32, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return absl::ErrnoToStatus(errno, "getrandom");
  std::string secret = absl::BytesToHexString(bytes);
  RETURN_IF_ERROR(WriteFileAtomic(path, secret, kPrivateFile));
  return secret;
}

}  // namespace assay::store
