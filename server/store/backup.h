// Makes a backup (backup_directory.h) of a data directory, while its daemon goes on or without one.

#ifndef SERVER_STORE_BACKUP_H_
#define SERVER_STORE_BACKUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/core/query.h"

namespace assay::store {

struct BackupOptions {
  std::string data_directory;
  std::string directory;  // absolute
  std::string version;    // of this program
  int64_t now_us = 0;
};

// A backup that is made in steps, so that it can be given up at any of them: then what was in the
// directory stays as it is. The database is copied as one read transaction sees it, and then the
// artifacts that it names, which were written before it named them. So all is of one event. Not
// thread-safe, but may move between threads.
class Backup {
 public:
  explicit Backup(BackupOptions options);
  ~Backup();
  Backup(const Backup&) = delete;
  Backup& operator=(const Backup&) = delete;

  // Does a part of the work: some MiB of the database, or some artifacts, the last of them whatever
  // its size. Returns the artifacts that are damaged or missing, and so not in the backup. An error
  // ends it: INVALID_ARGUMENT or FAILED_PRECONDITION if the directory cannot hold this backup,
  // DATA_LOSS if the database is damaged, RESOURCE_EXHAUSTED if the disk is full.
  absl::StatusOr<std::vector<core::StoredFault>> Step();
  bool is_done() const;

  // So far.
  const core::BackupCounts& counts() const;

 private:
  struct Work;
  const std::unique_ptr<Work> work_;
};

}  // namespace assay::store

#endif  // SERVER_STORE_BACKUP_H_
