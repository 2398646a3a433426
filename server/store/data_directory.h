// The directory that holds the database and the artifacts; one daemon at a time.

#ifndef SERVER_STORE_DATA_DIRECTORY_H_
#define SERVER_STORE_DATA_DIRECTORY_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

#include "common/file.h"

namespace assay::store {

// Held locked while this lives. Movable.
class DataDirectory {
 public:
  // Makes the directory if needed and locks it. What is in
  // it becomes the owner's alone, and temporary files of killed processes are removed; the log says
  // what was changed.
  // FAILED_PRECONDITION: another process holds it, or it lies on a network file system, where
  // SQLite's write-ahead log is not safe.
  static absl::StatusOr<DataDirectory> Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string database_path() const { return JoinPath(path_, "assay.db"); }
  std::string artifacts_path() const { return JoinPath(path_, "artifacts"); }
  // Whether there is something that only a database can have come with: a secret, or artifacts.
  bool is_database_expected() const { return is_database_expected_; }
  // Puts by, once the database is open, the room that the next start needs if the disk is full by
  // then: up to 1 MiB of what is free. Best effort.
  void KeepBallast() const;
  // Random, drawn at the first call, readable by the owner alone. See core::Policy. To be called
  // when there is a database: a secret is a sign of one.
  absl::StatusOr<std::string> Secret() const;

 private:
  std::string path_;
  bool is_database_expected_ = false;
  UniqueFd lock_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_DATA_DIRECTORY_H_
