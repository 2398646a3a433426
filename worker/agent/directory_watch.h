// Tells which of several directories have changed, by inotify.

#ifndef WORKER_AGENT_DIRECTORY_WATCH_H_
#define WORKER_AGENT_DIRECTORY_WATCH_H_

#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::agent {

// Not thread-safe.
class DirectoryWatch {
 public:
  using Filter = std::function<bool(absl::string_view file_name)>;

  // Only files that `filter` lets through count.
  static absl::StatusOr<DirectoryWatch> Make(Filter filter);

  // Readable when something happened.
  int fd() const { return fd_.get(); }

  // Watches files that are made, written to or renamed into `path`; a directory that is removed is
  // no longer watched. RESOURCE_EXHAUSTED if the kernel has no watches left.
  absl::Status Add(const std::string& path);

  // The directories that changed since the last call; all if the kernel lost count. Does not block.
  std::set<std::string> Changed();

 private:
  DirectoryWatch(UniqueFd fd, Filter filter) : fd_(std::move(fd)), filter_(std::move(filter)) {}

  UniqueFd fd_;
  Filter filter_;
  std::map<int, std::string> paths_;  // by watch descriptor
};

}  // namespace assay::agent

#endif  // WORKER_AGENT_DIRECTORY_WATCH_H_
