#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/strip.h"

#include "common/status.h"

namespace assay {
namespace {

absl::Status Fail(absl::string_view what, absl::string_view path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
}

absl::Status SyncDirectory(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return Fail("cannot open", path);
  if (fsync(fd.get()) != 0) return Fail("cannot sync", path);
  return absl::OkStatus();
}

// Between the name and the number of the process that writes.
constexpr char kTemporarySuffix[] = ".tmp";

bool IsTemporary(absl::string_view name) {
  const size_t at = name.rfind(kTemporarySuffix);
  if (at == absl::string_view::npos || at == 0) return false;
  const absl::string_view digits = name.substr(at + sizeof(kTemporarySuffix) - 1);
  return !digits.empty() && digits.find_first_not_of("0123456789") == absl::string_view::npos;
}

absl::Status WriteSynced(const std::string& path, absl::string_view content, int mode) {
  unlink(path.c_str());  // of a process that had our number
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd.is_open()) return Fail("cannot create", path);
  RETURN_IF_ERROR(Annotate(WriteAll(fd.get(), content), path));
  if (fsync(fd.get()) != 0) return Fail("cannot sync", path);
  return absl::OkStatus();
}

absl::Status RenameInto(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return Fail("cannot rename to", to);
  const std::string directory = std::filesystem::path(to).parent_path().string();
  return SyncDirectory(directory.empty() ? "." : directory);
}

absl::string_view KindName(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

absl::Status NotRegular(const std::string& path, mode_t mode) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is ", KindName(mode), ", not a regular file; give the path of one"));
}

absl::Status TooLarge(const std::string& path, int64_t bytes_max) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has more than the ", bytes_max,
                   " bytes that such a file may have; is it the right one?"));
}

}  // namespace

void UniqueFd::Reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path, Links links) {
  // O_NONBLOCK: a pipe that nobody writes to would hold us in open(2).
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  UniqueFd fd(open(path.c_str(), links == Links::kRefuse ? flags | O_NOFOLLOW : flags));
  if (!fd.is_open() && errno == ENXIO) return NotRegular(path, S_IFSOCK);
  if (!fd.is_open()) return Fail("cannot open", path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return Fail("cannot stat", path);
  if (!S_ISREG(info.st_mode)) return NotRegular(path, info.st_mode);
  return fd;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t bytes_max, Links links) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path, links));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return Fail("cannot stat", path);
  if (info.st_size > bytes_max) return TooLarge(path, bytes_max);
  std::string content;
  content.reserve(static_cast<size_t>(std::max<off_t>(info.st_size, 0)));
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail("cannot read", path);
    if (n == 0) return content;
    // The size said little of a file that grows, and nothing of one in /proc.
    if (n > bytes_max - static_cast<int64_t>(content.size())) return TooLarge(path, bytes_max);
    content.append(buffer.data(), static_cast<size_t>(n));
  }
}

absl::Status WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomic(const std::string& path, absl::string_view content, int mode) {
  const std::string temporary = absl::StrCat(path, kTemporarySuffix, getpid());
  absl::Status status = WriteSynced(temporary, content, mode);
  if (status.ok()) status = RenameInto(temporary, path);
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

absl::Status RenameSynced(const std::string& from, const std::string& to) {
  const UniqueFd fd(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return Fail("cannot open", from);
  if (fsync(fd.get()) != 0) return Fail("cannot sync", from);
  return RenameInto(from, to);
}

absl::StatusOr<std::vector<std::string>> RemoveTemporaryFiles(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<std::string> removed;
  for (const std::string& name : names) {
    if (!IsTemporary(name)) continue;
    const std::string path = JoinPath(directory, name);
    if (unlink(path.c_str()) != 0) return Fail("cannot remove", path);
    removed.push_back(name);
  }
  return removed;
}

absl::Status MakeDirectories(const std::string& path, int mode) {
  if (mkdir(path.c_str(), static_cast<mode_t>(mode)) == 0) return absl::OkStatus();
  if (errno == ENOENT) {
    const std::string parent = std::filesystem::path(path).parent_path().string();
    if (parent.empty() || parent == path) return Fail("cannot make", path);
    RETURN_IF_ERROR(MakeDirectories(parent, mode));
    if (mkdir(path.c_str(), static_cast<mode_t>(mode)) == 0) return absl::OkStatus();
  }
  const int error = errno;
  std::error_code ignored;
  if (error == EEXIST && std::filesystem::is_directory(path, ignored)) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot make ", path));
}

absl::StatusOr<bool> MakeEntryPrivate(const std::string& path) {
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    return Fail("cannot stat", path);
  }
  if (S_ISLNK(info.st_mode) || (info.st_mode & kOthers) == 0) return false;
  if (chmod(path.c_str(), info.st_mode & 07777 & ~kOthers) != 0)
    return Fail("cannot take permissions of others from", path);
  return true;
}

absl::StatusOr<std::vector<std::string>> MakePrivate(const std::string& path) {
  std::vector<std::string> loose;
  const auto make_private = [&](const std::string& entry) -> absl::Status {
    ASSIGN_OR_RETURN(const bool was_open, MakeEntryPrivate(entry));
    if (was_open && loose.size() < kLoosePathsMax) loose.push_back(entry);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(make_private(path));
  std::error_code error;
  if (std::filesystem::is_symlink(path, error) || !std::filesystem::is_directory(path, error))
    return loose;
  std::filesystem::recursive_directory_iterator entries(path, error);
  const std::filesystem::recursive_directory_iterator end;
  while (!error && entries != end) {
    RETURN_IF_ERROR(make_private(entries->path().string()));
    entries.increment(error);
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", path));
  return loose;
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot remove ", path));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::directory_iterator entries(path, error);
  std::vector<std::string> names;
  const std::filesystem::directory_iterator end;
  while (!error && entries != end) {
    names.push_back(entries->path().filename().string());
    entries.increment(error);
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", path));
  std::sort(names.begin(), names.end());
  return names;
}

bool FileExists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

absl::StatusOr<int64_t> FileSize(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return Fail("cannot stat", path);
  return info.st_size;
}

std::string JoinPath(absl::string_view dir, absl::string_view name) {
  return absl::StrCat(absl::StripSuffix(dir, "/"), "/", absl::StripPrefix(name, "/"));
}

absl::StatusOr<std::string> ProgramDirectory() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::ErrnoToStatus(error.value(), "cannot read /proc/self/exe");
  return program.parent_path().string();
}

}  // namespace assay
