// What a backup is: a directory of
//
//   backup.json        which database is the backup's, and what has to be in it; written last
//   assay-TIME.db      the database, whole in one file
//   secret             as in the data directory
//   artifacts/ab/...   the artifacts that the database names, and those of backups before
//
// A new backup puts a further database beside the present one, and replaces backup.json by a
// rename: before that the old backup is whole, after it the new one is.

#ifndef SERVER_STORE_BACKUP_DIRECTORY_H_
#define SERVER_STORE_BACKUP_DIRECTORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/file.h"
#include "server/store/mark.h"

namespace assay::store {

inline constexpr char kManifestName[] = "backup.json";

// backup.json.
struct BackupManifest {
  std::string schema = "assay.backup/v1";
  std::string version;  // of the program that has made it
  std::string time;     // of its event, RFC 3339 in UTC
  // The event log's end in the database, as the mark has it.
  int64_t event_seq = 0;
  std::string identity;
  std::string chain;  // hexadecimal
  int64_t last_submission = 0;
  int64_t last_run = 0;
  int64_t last_token = 0;
  std::string database;  // the file's name
  int64_t database_bytes = 0;
  std::string database_sha256;
  std::string secret_sha256;
  int64_t artifact_count = 0;
  int64_t artifact_bytes = 0;
};

// The mark of a database that was just put back from the backup.
Mark MarkOf(const BackupManifest& manifest);

// Ends with a digest of all that is before it.
std::string PrintManifest(const BackupManifest& manifest);

// Of the backup in `directory`. NOT_FOUND if there is none; DATA_LOSS if the file is not as it was
// written; FAILED_PRECONDITION if a newer program has made it.
absl::StatusOr<BackupManifest> ReadManifest(const std::string& directory);

// Held by whoever writes a backup, and by whoever reads it while it must not change.
// FAILED_PRECONDITION if somebody else holds it.
absl::StatusOr<UniqueFd> LockToWrite(const std::string& directory);
absl::StatusOr<UniqueFd> LockToRead(const std::string& directory);

}  // namespace assay::store

#endif  // SERVER_STORE_BACKUP_DIRECTORY_H_
