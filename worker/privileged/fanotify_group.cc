#include "worker/privileged/fanotify_group.h"

#include <fcntl.h>
#include <sys/fanotify.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "common/status.h"

namespace assay::privileged {
namespace {

constexpr size_t kDirectoryCountMax = 100'000;

}  // namespace

absl::StatusOr<std::vector<std::string>> WithChildren(const std::vector<std::string>& roots) {
  std::vector<std::string> result;
  for (const std::string& root : roots) {
    std::error_code error;
    result.push_back(root);
    std::filesystem::recursive_directory_iterator entry(root, error);
    const std::filesystem::recursive_directory_iterator end;
    while (!error && entry != end && result.size() < kDirectoryCountMax) {
      if (entry->is_directory(error)) result.push_back(entry->path().string());
      entry.increment(error);
    }
    if (error)
      return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot watch the dataset at ", root));
  }
  return result;
}

absl::Status WatchError(const std::string& path) {
  const int error = errno;
  if (error == ENOSPC || error == EMFILE) {
    return absl::ResourceExhaustedError(absl::StrCat("the kernel has no watches left for ", path,
                                                     ": raise fs.inotify.max_user_watches"));
  }
  return absl::UnavailableError(absl::StrCat("cannot watch ", path, ": ", strerror(error)));
}

absl::StatusOr<UniqueFd> OpenFanotify(const std::vector<std::string>& directories,
                                      bool is_read_only, const MayWatch& may_watch) {
  UniqueFd fd(fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_MARKS,
                            O_RDONLY | O_CLOEXEC | O_LARGEFILE));
  if (!fd.is_open()) return WatchError("(fanotify_init)");
  const uint64_t mask = FAN_ACCESS | FAN_EVENT_ON_CHILD | (is_read_only ? 0 : FAN_OPEN);
  for (const std::string& path : directories) {
    const UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
    if (!directory.is_open()) return WatchError(path);
    std::error_code error;
    const std::filesystem::path real =
        std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", directory.get()), error);
    if (error) return absl::ErrnoToStatus(error.value(), path);
    RETURN_IF_ERROR(may_watch(real.string()));
    if (fanotify_mark(fd.get(), FAN_MARK_ADD, mask, directory.get(), nullptr) != 0)
      return WatchError(path);
  }
  return fd;
}

}  // namespace assay::privileged
