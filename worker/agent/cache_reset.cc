#include "worker/agent/cache_reset.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/agent/file_system.h"

namespace assay::agent {
namespace {

bool DropCaches(const std::string& path, const std::string& helper_socket) {
  if (privileged::DropCaches(path).ok()) return true;
  if (helper_socket.empty()) return false;
  const absl::Status asked = privileged::AskToDropCaches(helper_socket);
  if (!asked.ok()) LOG(INFO) << "the whole page cache stays: " << asked;
  return asked.ok();
}

absl::Status GiveUpPages(const std::string& path) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path));
  const int error = posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot uncache ", path));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CacheReset> ResetCaches(const std::string& dataset_directory,
                                       const std::string& drop_caches_path,
                                       const std::string& helper_socket) {
  if (!FileExists(dataset_directory))
    return absl::NotFoundError(absl::StrCat("no dataset at ", dataset_directory));
  const absl::Status synced = SyncFileSystem(dataset_directory);  // only clean pages go
  if (!synced.ok()) LOG(WARNING) << synced;
  if (DropCaches(drop_caches_path, helper_socket)) return CacheReset{"drop_caches", 0};
  CacheReset reset{"fadvise", 0};
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(dataset_directory, error);
  const std::filesystem::recursive_directory_iterator end;
  while (!error && entry != end) {
    if (entry->is_regular_file(error)) {
      RETURN_IF_ERROR(GiveUpPages(entry->path().string()));
      ++reset.file_count;
    }
    entry.increment(error);
  }
  if (error)
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", dataset_directory));
  return reset;
}

}  // namespace assay::agent
