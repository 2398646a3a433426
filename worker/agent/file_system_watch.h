// Sees who opens or reads the files of a dataset, by whatever name: hard links and names that were
// made elsewhere included. It marks whole file systems, so what happens to all other files there
// has to be told from it, cheaply: events carry what identifies a file for good (its file system
// and its handle, the inode's number and generation as a rule), and no descriptor. So nobody's
// files are opened for it, and whoever holds its descriptor can read none of them.

#ifndef WORKER_AGENT_FILE_SYSTEM_WATCH_H_
#define WORKER_AGENT_FILE_SYSTEM_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"

namespace assay::agent {

// Not thread-safe.
class FileSystemWatch {
 public:
  // So long files are identified; a file system of a remote server may take milliseconds for each.
  static constexpr absl::Duration kBudget = absl::Seconds(30);

  // Watches the files that are in `directories` themselves (not further below) now or later. With
  // `is_read_only` opening a file does not count, reading it does. UNAVAILABLE if the kernel or one
  // of the file systems refuses (only CAP_SYS_ADMIN may; Linux 5.9; no NFS, no overlay), errno's
  // code if a directory cannot be listed. Looks at each file's inode, which stays in memory. Blocks
  // for up to kBudget.
  static absl::StatusOr<FileSystemWatch> Open(const std::vector<std::string>& directories,
                                              bool is_read_only, const Clock& clock);

  // Gives up the descriptor, from which fanotify events are read; it does not block.
  UniqueFd TakeFd() { return std::move(fd_); }

  // The dataset's path of the file that one event is about; nullopt if it is not of the dataset.
  // Files that came after Open are known by the directory in which they are.
  std::optional<std::string> PathOf(absl::string_view event) const;

  size_t file_count() const { return files_.size(); }  // identified
  // Why not all are, as a sentence; empty if all are.
  const std::string& incomplete() const { return incomplete_; }

 private:
  // 64 bits of what identifies a file: that two of a million collide has a chance of 1 in 40
  // million, and then somebody else's touch is taken for one of the dataset.
  using Identity = uint64_t;
  struct File {
    Identity identity;
    size_t name;  // where it begins in names_
    size_t directory;
    bool operator<(const File& other) const { return identity < other.identity; }
  };
  struct Directory {
    Identity identity;
    size_t index;
    bool operator<(const Directory& other) const { return identity < other.identity; }
  };
  FileSystemWatch(UniqueFd fd, bool is_read_only);
  absl::StatusOr<Identity> Identify(const std::string& path);
  absl::StatusOr<uint64_t> Mark(int mount, const std::string& path);
  absl::Status AddFilesOf(size_t directory, MonoTime deadline, const Clock& clock);

  UniqueFd fd_;
  uint64_t mask_;
  std::map<int, uint64_t> file_systems_;  // those that are marked: their numbers by mount
  std::vector<std::string> paths_;        // of directories
  std::vector<Directory> directories_;    // in order
  std::vector<File> files_;               // in order
  std::string names_;                     // of files, each with a zero byte behind it
  std::string incomplete_;
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_FILE_SYSTEM_WATCH_H_
