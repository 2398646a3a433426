// Files: whole reads, atomic writes, and durable appends.

#ifndef COMMON_FILE_H_
#define COMMON_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace assay {

// An open file descriptor, closed when destroyed. Movable, not copyable.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { Reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset();

 private:
  int fd_ = -1;
};

// Far above what configuration, keys, notes and the kernel's own files have: /proc/cpuinfo takes
// 1.5 kB for each processor.
inline constexpr int64_t kSmallFileBytesMax = int64_t{4} << 20;

// Whether the last part of a path may be a symbolic link. kRefuse where its directory belongs to an
// account that must not choose what we read.
enum class Links { kFollow, kRefuse };

// Opens a regular file for reading and never waits for anybody: a pipe without a writer, or a
// device without an end, is refused. NOT_FOUND or another errno code; INVALID_ARGUMENT for a
// directory, pipe, socket or device. Messages name the path.
absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path, Links links = Links::kFollow);

// The whole content of a regular file. As OpenRegularFile, and INVALID_ARGUMENT for a file of more
// than `bytes_max` bytes, of which no more than that are ever held. Whoever expects larger files
// says how large.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     int64_t bytes_max = kSmallFileBytesMax,
                                     Links links = Links::kFollow);

// What nobody but the owner may look into, whatever the umask of the process.
inline constexpr int kPrivateFile = 0600;
inline constexpr int kPrivateDirectory = 0700;

// Writes a temporary file beside `path`, fsyncs it, renames it over `path` and fsyncs the
// directory: after a crash `path` holds either the old content or the new. `mode` is the file's
// permission, less the umask. A failure leaves no temporary file; a crash may, see
// RemoveTemporaryFiles.
absl::Status WriteFileAtomic(const std::string& path, absl::string_view content, int mode = 0644);

// Fsyncs the file `from`, renames it over `to` in the same directory and fsyncs that.
absl::Status RenameSynced(const std::string& from, const std::string& to);

// Removes what WriteFileAtomic in processes that were killed has left in `directory`, and returns
// the names. Only where no other process writes.
absl::StatusOr<std::vector<std::string>> RemoveTemporaryFiles(const std::string& directory);

// Makes `path` and its missing parents, each with permission `mode`, less the umask. OK if it
// exists already, whatever its permission.
absl::Status MakeDirectories(const std::string& path, int mode = 0755);

// Takes all permissions from group and others on `path` and, if it is a directory, on all below it;
// symbolic links are left alone and not followed. Returns the paths that were open, at most
// kLoosePathsMax of them.
inline constexpr size_t kLoosePathsMax = 100;
absl::StatusOr<std::vector<std::string>> MakePrivate(const std::string& path);

// The same for `path` alone; whether it was open.
absl::StatusOr<bool> MakeEntryPrivate(const std::string& path);

// Removes `path` and all below it. OK if it does not exist.
absl::Status RemoveTree(const std::string& path);

// Names (not paths) of the entries of a directory, sorted bytewise, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

bool FileExists(const std::string& path);

// Size in bytes.
absl::StatusOr<int64_t> FileSize(const std::string& path);

// Writes all of `bytes` to `fd`, however often the kernel stops half-way.
absl::Status WriteAll(int fd, absl::string_view bytes);

// "<dir>/<name>", with exactly one slash between.
std::string JoinPath(absl::string_view dir, absl::string_view name);

// The directory that holds the running program, for finding its siblings.
absl::StatusOr<std::string> ProgramDirectory();

}  // namespace assay

#endif  // COMMON_FILE_H_
