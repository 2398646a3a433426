#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/clock.h"
#include "common/file.h"
#include "worker/agent/preflight/check.h"

namespace assay::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kReaders = 4;
constexpr size_t kBlockBytes = size_t{4} << 20;
constexpr size_t kAlignment = 4096;  // of what is read and written directly
constexpr double kMB = 1e6;
constexpr double kGB = 1e9;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Block = std::unique_ptr<void, Free>;

Block MakeBlock() {
  Block block(std::aligned_alloc(kAlignment, kBlockBytes));
  // Nothing that a disk could compress.
  auto* const words = static_cast<uint64_t*>(block.get());
  uint64_t state = 88172645463325252U;
  for (size_t i = 0; i < kBlockBytes / sizeof(uint64_t); ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    words[i] = state;
  }
  return block;
}

struct Transfer {
  int64_t bytes = 0;
  absl::Duration time;
  bool is_direct = true;
  double mb_per_s() const {
    return time <= absl::ZeroDuration()
               ? 0
               : static_cast<double>(bytes) / absl::ToDoubleSeconds(time) / kMB;
  }
};

// Past the page cache where the file system can; else after what the cache has of it was dropped.
UniqueFd OpenDirect(const std::string& path, int flags, bool* is_direct) {
  UniqueFd fd(open(path.c_str(), flags | O_DIRECT | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
  if (fd.is_open() || errno != EINVAL) return fd;
  *is_direct = false;
  fd = UniqueFd(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, kPrivateFile));
  if (fd.is_open()) posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return fd;
}

// What the readers share.
struct Reading {
  const std::vector<std::string>& paths;
  const int64_t bytes_max;
  const MonoTime end;
  const Clock& clock;
  std::atomic<size_t> next{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<bool> is_direct{true};
  std::atomic<int> error{0};
  bool IsOver() const { return bytes.load() >= bytes_max || clock.Mono() >= end; }
};

void ReadFiles(Reading* reading) {
  const Block block = MakeBlock();
  while (!reading->IsOver()) {
    const size_t index = reading->next++;
    if (index >= reading->paths.size()) return;
    bool is_direct = true;
    const UniqueFd fd = OpenDirect(reading->paths[index], O_RDONLY, &is_direct);
    if (!is_direct) reading->is_direct = false;
    ssize_t count = fd.is_open() ? 1 : -1;
    while (count > 0 && !reading->IsOver()) {
      count = read(fd.get(), block.get(), kBlockBytes);
      if (count > 0) reading->bytes += count;
    }
    if (count < 0) reading->error = errno;
  }
}

Transfer ReadAll(const std::vector<std::string>& paths, int64_t bytes_max, absl::Duration patience,
                 int* error) {
  const RealClock clock;
  const MonoTime begin = clock.Mono();
  Reading reading{.paths = paths, .bytes_max = bytes_max, .end = begin + patience, .clock = clock};
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i)
    readers.emplace_back(ReadFiles, &reading);
  for (std::thread& reader : readers)
    reader.join();
  *error = reading.error;
  return {.bytes = reading.bytes, .time = clock.Mono() - begin, .is_direct = reading.is_direct};
}

// Regular files below `directory`, in the order in which the file system has them, and their size.
struct Tree {
  std::vector<std::string> paths;
  int64_t bytes = 0;
  std::string error;
};

Tree List(const std::string& directory) {
  constexpr size_t kFilesMax = 1'000'000;
  Tree tree;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_regular_file(error) || it->is_symlink(error)) continue;
    tree.paths.push_back(it->path().string());
    tree.bytes += static_cast<int64_t>(it->file_size(error));
    if (tree.paths.size() >= kFilesMax) break;
  }
  if (error) tree.error = absl::StrCat("cannot list ", directory, ": ", error.message());
  return tree;
}

absl::Status WriteDirect(const std::string& path, int64_t bytes_max, absl::Duration patience,
                         Transfer* written) {
  const RealClock clock;
  const Block block = MakeBlock();
  const UniqueFd fd = OpenDirect(path, O_WRONLY | O_CREAT | O_EXCL, &written->is_direct);
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  const MonoTime begin = clock.Mono();
  while (written->bytes < bytes_max && clock.Mono() - begin < patience) {
    const ssize_t count = write(fd.get(), block.get(), kBlockBytes);
    if (count <= 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
    written->bytes += count;
  }
  if (fsync(fd.get()) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot sync ", path));
  written->time = clock.Mono() - begin;
  return absl::OkStatus();
}

std::string Words(const Transfer& transfer) {
  return absl::StrFormat("%.0f MB in %.1f s%s", static_cast<double>(transfer.bytes) / kMB,
                         absl::ToDoubleSeconds(transfer.time),
                         transfer.is_direct ? "" : ", through the page cache");
}

constexpr char kNoStage[] = "no folder to stage to is given";

// The folder, or what it will be made in: making it is the step's, which knows who may pass.
std::string PresentPart(const std::string& directory) {
  fs::path path(directory);
  std::error_code error;
  while (!fs::is_directory(path, error) && path.has_parent_path() && path != path.parent_path())
    path = path.parent_path();
  return path.string();
}

absl::StatusOr<int64_t> FreeBytes(const std::string& directory) {
  struct statvfs info {};
  if (statvfs(directory.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot ask for the space of ", directory));
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

// Empty: it fits, or nothing is to be staged.
std::string ProblemOfSpace(const CheckOptions& options, int64_t free_bytes) {
  if (!options.is_staged || options.dataset_directory.empty()) return "";
  const Tree dataset = List(options.dataset_directory);
  if (!dataset.error.empty()) return dataset.error;
  if (dataset.bytes <= free_bytes) return "";
  return absl::StrFormat("%.1f GB are free in %s, and the dataset has %.1f GB",
                         static_cast<double>(free_bytes) / kGB, options.stage_directory,
                         static_cast<double>(dataset.bytes) / kGB);
}

// What is free where stages lie, in bytes; nullopt: `result` says why that is not known.
std::optional<int64_t> StageSpace(const CheckOptions& options, CheckResult* result) {
  if (options.stage_directory.empty()) return std::nullopt;
  result->detail.clear();
  const absl::StatusOr<int64_t> free_bytes = FreeBytes(PresentPart(options.stage_directory));
  if (free_bytes.ok()) return *free_bytes;
  result->problem = std::string(free_bytes.status().message());
  return std::nullopt;
}

}  // namespace

CheckResult CheckDatasetDisk(const CheckOptions& options) {
  const std::string name = "dataset-disk";
  if (options.dataset_directory.empty()) return NotMeasured(name, "no dataset is given");
  const Tree dataset = List(options.dataset_directory);
  CheckResult result = NotMeasured(name, "");
  if (!dataset.error.empty()) {
    result.problem = dataset.error;
    return result;
  }
  int error = 0;
  const Transfer read = ReadAll(dataset.paths, options.disk_bytes, options.patience, &error);
  if (error != 0)
    result.problem = absl::StrCat("cannot read what lies in ", options.dataset_directory, ": ",
                                  std::error_code(error, std::generic_category()).message());
  result.detail = absl::StrCat("direct reads by ", kReaders, " threads: ", Words(read), " of ",
                               options.dataset_directory);
  if (read.bytes == 0) return result;
  result.is_measured = true;
  result.value = read.mb_per_s();
  result.unit = "MB/s";
  return result;
}

CheckResult CheckStageSpace(const CheckOptions& options) {
  CheckResult result = NotMeasured("stage-space", kNoStage);
  const std::optional<int64_t> free_bytes = StageSpace(options, &result);
  if (!free_bytes.has_value()) return result;
  result.is_measured = true;
  result.value = static_cast<double>(*free_bytes) / kGB;
  result.unit = "GB";
  result.detail = absl::StrCat("free in ", options.stage_directory);
  result.problem = ProblemOfSpace(options, *free_bytes);
  return result;
}

CheckResult CheckStageDisk(const CheckOptions& options) {
  CheckResult result = NotMeasured("stage-disk", kNoStage);
  const std::optional<int64_t> free_bytes = StageSpace(options, &result);
  if (!free_bytes.has_value()) return result;
  const std::string path =
      JoinPath(PresentPart(options.stage_directory), absl::StrCat("preflight.", getpid()));
  const auto remove = absl::MakeCleanup([&path] { unlink(path.c_str()); });
  Transfer written;
  const absl::Status status =
      WriteDirect(path, std::min(options.disk_bytes, *free_bytes / 2), options.patience, &written);
  if (!status.ok()) {
    result.problem = std::string(status.message());
    return result;
  }
  int error = 0;
  const Transfer read = ReadAll({path}, written.bytes, options.patience, &error);
  result.is_measured = written.bytes > 0;
  result.value = written.mb_per_s();
  result.unit = "MB/s";
  result.detail = absl::StrFormat("written and synced %s to %s, read back at %.0f MB/s",
                                  Words(written), options.stage_directory, read.mb_per_s());
  if (error != 0) result.problem = "what was written cannot be read";
  return result;
}

}  // namespace assay::agent
