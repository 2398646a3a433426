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
  // Makes the directory if needed, locks it, and draws the secret at the first time. What is in
  // it becomes the owner's alone, and temporary files of killed processes are removed; the log says
  // what was changed.
  // FAILED_PRECONDITION: another process holds it, or it lies on a network file system, where
  // SQLite's write-ahead log is not safe.
  static absl::StatusOr<DataDirectory> Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string database_path() const { return JoinPath(path_, "assay.db"); }
  std::string artifacts_path() const { return JoinPath(path_, "artifacts"); }
  // Random, made once, readable by the owner alone. See core::Policy.
  const std::string& secret() const { return secret_; }

 private:
  std::string path_;
  std::string secret_;
  UniqueFd lock_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_DATA_DIRECTORY_H_
