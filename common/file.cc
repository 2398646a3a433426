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

}  // namespace

void UniqueFd::Reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return Fail("cannot open", path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return Fail("cannot stat", path);
  std::string content;
  content.reserve(static_cast<size_t>(std::max<off_t>(info.st_size, 0)));
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail("cannot read", path);
    if (n == 0) return content;
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
  const std::string temporary = absl::StrCat(path, ".tmp", getpid());
  {
    const UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
    if (!fd.is_open()) return Fail("cannot create", temporary);
    RETURN_IF_ERROR(Annotate(WriteAll(fd.get(), content), temporary));
    if (fsync(fd.get()) != 0) return Fail("cannot sync", temporary);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return Fail("cannot rename to", path);
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return SyncDirectory(directory.empty() ? "." : directory);
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot make ", path));
  return absl::OkStatus();
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
