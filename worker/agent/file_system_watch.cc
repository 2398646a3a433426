#include "worker/agent/file_system_watch.h"

#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/status.h"
#include "worker/privileged/fanotify_group.h"

namespace assay::agent {
namespace {

constexpr int kIdentityOnly =
    0x200;  // AT_HANDLE_FID of linux/fcntl.h, since 6.5: as events have it

uint64_t Digest(absl::string_view bytes) {
  return std::hash<std::string_view>()(std::string_view(bytes.data(), bytes.size()));
}

// What an event has between its header and a name, if there is one: number of the file system,
// length and kind of the handle, the handle.
struct HandleHead {
  uint64_t file_system = 0;
  uint32_t byte_count = 0;
  int32_t kind = 0;
};
static_assert(sizeof(HandleHead) == 16);

// Empty if the record is too short to be one.
absl::string_view HandleIn(absl::string_view record) {
  HandleHead head;
  if (record.size() < sizeof(head)) return {};
  std::memcpy(&head, record.data(), sizeof(head));
  return head.byte_count > record.size() - sizeof(head)
             ? absl::string_view()
             : record.substr(0, sizeof(head) + head.byte_count);
}

template <class Entry>
const Entry* Find(const std::vector<Entry>& entries, uint64_t identity) {
  const auto found =
      std::lower_bound(entries.begin(), entries.end(), identity,
                       [](const Entry& entry, uint64_t wanted) { return entry.identity < wanted; });
  return found == entries.end() || found->identity != identity ? nullptr : &*found;
}

}  // namespace

FileSystemWatch::FileSystemWatch(UniqueFd fd, bool is_read_only)
    : fd_(std::move(fd)), mask_(FAN_ACCESS | (is_read_only ? 0 : FAN_OPEN)) {}

absl::StatusOr<FileSystemWatch> FileSystemWatch::Open(const std::vector<std::string>& directories,
                                                      bool is_read_only, const Clock& clock) {
  UniqueFd fd(fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE |
                                FAN_REPORT_FID | FAN_REPORT_DFID_NAME,
                            O_RDONLY | O_CLOEXEC | O_LARGEFILE));
  if (!fd.is_open()) return privileged::WatchError("(fanotify_init)");
  FileSystemWatch watch(std::move(fd), is_read_only);
  watch.paths_ = directories;
  for (size_t i = 0; i < directories.size(); ++i) {
    ASSIGN_OR_RETURN(const Identity identity, watch.Identify(directories[i]));
    watch.directories_.push_back({identity, i});
  }
  std::sort(watch.directories_.begin(), watch.directories_.end());
  const MonoTime deadline = clock.Mono() + kBudget;
  for (size_t i = 0; i < directories.size() && watch.incomplete_.empty(); ++i)
    RETURN_IF_ERROR(watch.AddFilesOf(i, deadline, clock));
  watch.files_.shrink_to_fit();
  watch.names_.shrink_to_fit();
  std::sort(watch.files_.begin(), watch.files_.end());
  return watch;
}

absl::Status FileSystemWatch::AddFilesOf(size_t directory, MonoTime deadline, const Clock& clock) {
  std::error_code error;
  std::filesystem::directory_iterator entry(paths_[directory], error);
  const std::filesystem::directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    std::error_code vanished;
    if (!entry->is_regular_file(vanished)) continue;
    const absl::StatusOr<Identity> identity = Identify(entry->path().string());
    if (absl::IsNotFound(identity.status())) continue;
    RETURN_IF_ERROR(identity.status());
    files_.push_back({*identity, names_.size(), directory});
    absl::StrAppend(&names_, entry->path().filename().string(), absl::string_view("", 1));
    if (clock.Mono() < deadline) continue;
    incomplete_ = absl::StrCat("only ", files_.size(), " files were identified in ",
                               absl::FormatDuration(kBudget),
                               ": the others are known by the folders in which they are");
    return absl::OkStatus();
  }
  if (error)
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", paths_[directory]));
  return absl::OkStatus();
}

// By its path as the kernel resolves it, so that where a link leads is what is watched.
absl::StatusOr<FileSystemWatch::Identity> FileSystemWatch::Identify(const std::string& path) {
  alignas(file_handle) std::array<char, sizeof(HandleHead) + MAX_HANDLE_SZ> bytes{};
  static_assert(offsetof(file_handle, f_handle) == 8);
  auto* const handle = reinterpret_cast<file_handle*>(bytes.data() + 8);
  int mount = 0;
  for (const int flags : {AT_SYMLINK_FOLLOW | kIdentityOnly, AT_SYMLINK_FOLLOW}) {
    handle->handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(AT_FDCWD, path.c_str(), handle, &mount, flags) == 0) {
      ASSIGN_OR_RETURN(const uint64_t file_system, Mark(mount, path));
      std::memcpy(bytes.data(), &file_system, sizeof(file_system));
      return Digest({bytes.data(), sizeof(HandleHead) + handle->handle_bytes});
    }
    if (errno != EINVAL) break;  // a kernel that does not know the flag
  }
  if (errno == ENOENT) return absl::NotFoundError(path);
  return privileged::WatchError(path);
}

// The number of the file system that `path` is on, which is watched from now on.
absl::StatusOr<uint64_t> FileSystemWatch::Mark(int mount, const std::string& path) {
  const auto known = file_systems_.find(mount);
  if (known != file_systems_.end()) return known->second;
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0 ||
      fanotify_mark(fd_.get(), FAN_MARK_ADD | FAN_MARK_FILESYSTEM, mask_, AT_FDCWD, path.c_str()))
    return privileged::WatchError(path);
  uint64_t number = 0;
  static_assert(sizeof(info.f_fsid) == sizeof(number));
  std::memcpy(&number, &info.f_fsid, sizeof(number));
  return file_systems_[mount] = number;
}

std::optional<std::string> FileSystemWatch::PathOf(absl::string_view event) const {
  fanotify_event_metadata metadata{};
  if (event.size() < sizeof(metadata)) return std::nullopt;
  std::memcpy(&metadata, event.data(), sizeof(metadata));
  event.remove_prefix(std::min<size_t>(metadata.metadata_len, event.size()));
  std::optional<std::string> by_directory;
  while (event.size() >= sizeof(fanotify_event_info_header)) {
    fanotify_event_info_header header{};
    std::memcpy(&header, event.data(), sizeof(header));
    if (header.len < sizeof(header) || header.len > event.size()) break;
    const absl::string_view record = event.substr(sizeof(header), header.len - sizeof(header));
    event.remove_prefix(header.len);
    const absl::string_view handle = HandleIn(record);
    if (header.info_type == FAN_EVENT_INFO_TYPE_FID) {
      const File* const file = Find(files_, Digest(handle));
      if (file != nullptr) return JoinPath(paths_[file->directory], names_.c_str() + file->name);
    } else if (header.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME) {
      const Directory* const directory = Find(directories_, Digest(handle));
      if (directory == nullptr) continue;
      const absl::string_view name = record.substr(handle.size());  // padded with zero bytes
      by_directory = JoinPath(paths_[directory->index], name.substr(0, name.find('\0')));
    }
  }
  return by_directory;
}

}  // namespace assay::agent
