#include "server/store/backup_directory.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/sha256.h"
#include "common/status.h"
#include "server/store/json_archive.h"

namespace assay::store {
namespace {

constexpr char kLockName[] = "lock";
// Around the digest, at the end of the file.
constexpr absl::string_view kBeforeDigest = ",\"sha256\":\"";
constexpr absl::string_view kAfterDigest = "\"}\n";
constexpr size_t kDigestBytes = 64;
constexpr size_t kSealBytes = kBeforeDigest.size() + kDigestBytes + kAfterDigest.size();

absl::StatusOr<UniqueFd> Hold(UniqueFd fd, const std::string& directory, int how) {
  if (flock(fd.get(), how | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, directory);
  return absl::FailedPreconditionError(absl::StrCat(
      "the backup in ", directory, " is being written or read by somebody else; try again later"));
}

}  // namespace

template <class A, core::Is<BackupManifest> T>
constexpr void Fields(A& a, T& v) {
  a("schema", v.schema);
  a("version", v.version);
  a("time", v.time);
  a("event_seq", v.event_seq);
  a("identity", v.identity);
  a("chain", v.chain);
  a("last_submission", v.last_submission);
  a("last_run", v.last_run);
  a("last_token", v.last_token);
  a("database", v.database);
  a("database_bytes", v.database_bytes);
  a("database_sha256", v.database_sha256);
  a("secret_sha256", v.secret_sha256);
  a("artifact_count", v.artifact_count);
  a("artifact_bytes", v.artifact_bytes);
}

Mark MarkOf(const BackupManifest& manifest) {
  return {.identity = manifest.identity,
          .seq = manifest.event_seq,
          .chain = absl::HexStringToBytes(manifest.chain),
          .last_submission = manifest.last_submission,
          .last_run = manifest.last_run,
          .last_token = manifest.last_token,
          .wal = {}};
}

std::string PrintManifest(const BackupManifest& manifest) {
  JsonWriter writer;
  writer.Write(manifest);
  std::string text = writer.Take();
  text.pop_back();  // the closing brace
  const std::string digest = Sha256Hex(text);
  return absl::StrCat(text, kBeforeDigest, digest, kAfterDigest);
}

absl::StatusOr<BackupManifest> ReadManifest(const std::string& directory) {
  const std::string path = JoinPath(directory, kManifestName);
  if (!FileExists(path)) {
    return absl::NotFoundError(
        absl::StrCat("there is no whole backup in ", directory, ": it has no ", kManifestName));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto damaged = [&](absl::string_view problem) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: ", problem));
  };
  if (text.size() < kSealBytes) return damaged("it is cut off");
  const absl::string_view sealed = absl::string_view(text).substr(0, text.size() - kSealBytes);
  if (text != absl::StrCat(sealed, kBeforeDigest, Sha256Hex(sealed), kAfterDigest))
    return damaged("its digest is wrong");
  rapidjson::Document document;
  document.Parse(text.data(), text.size());
  if (document.HasParseError()) return damaged("it is no JSON");
  BackupManifest manifest;
  JsonReader reader(&document);
  Fields(reader, manifest);
  if (!reader.status().ok()) return damaged(reader.status().message());
  const std::string known = BackupManifest().schema;
  if (manifest.schema == known) return manifest;
  return absl::FailedPreconditionError(absl::StrCat(
      path, " is ", manifest.schema, ", this program knows ", known, "; use a newer program"));
}

absl::StatusOr<UniqueFd> LockToWrite(const std::string& directory) {
  const std::string path = JoinPath(directory, kLockName);
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kPrivateFile));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return Hold(std::move(fd), directory, LOCK_EX);
}

absl::StatusOr<UniqueFd> LockToRead(const std::string& directory) {
  const std::string path = JoinPath(directory, kLockName);
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // A copy of a backup has no lock, and nobody writes to it.
  if (!fd.is_open() && errno == ENOENT) return fd;
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  return Hold(std::move(fd), directory, LOCK_SH);
}

}  // namespace assay::store
