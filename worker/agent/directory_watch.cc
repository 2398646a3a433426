#include "worker/agent/directory_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::agent {
namespace {

constexpr size_t kReadBytes = 64 << 10;

}  // namespace

absl::StatusOr<DirectoryWatch> DirectoryWatch::Make(Filter filter) {
  UniqueFd fd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, "inotify_init1");
  return DirectoryWatch(std::move(fd), std::move(filter));
}

absl::Status DirectoryWatch::Add(const std::string& path) {
  const int watch = inotify_add_watch(fd_.get(), path.c_str(),
                                      IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO);
  if (watch < 0) {
    if (errno == ENOSPC) {
      return absl::ResourceExhaustedError(absl::StrCat("no inotify watches left for ", path,
                                                       ": raise fs.inotify.max_user_watches"));
    }
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch ", path));
  }
  paths_[watch] = path;
  return absl::OkStatus();
}

std::set<std::string> DirectoryWatch::Changed() {
  std::set<std::string> changed;
  std::string buffer(kReadBytes, '\0');
  for (;;) {
    const ssize_t n = read(fd_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return changed;
    for (size_t at = 0; at + sizeof(inotify_event) <= static_cast<size_t>(n);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const std::string name(buffer.data() + at + sizeof(event),
                             strnlen(buffer.data() + at + sizeof(event), event.len));
      at += sizeof(event) + event.len;
      const auto it = paths_.find(event.wd);
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        for (const auto& [watch, path] : paths_)
          changed.insert(path);
      } else if ((event.mask & IN_IGNORED) != 0) {
        paths_.erase(event.wd);
      } else if (it != paths_.end() && filter_(name)) {
        changed.insert(it->second);
      }
    }
  }
}

}  // namespace assay::agent
