#include "worker/agent/residency.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::agent {
namespace {

constexpr long kCachestatCall = 451;                 // the same on all architectures
constexpr int64_t kMincoreBytes = int64_t{1} << 30;  // looked at in one go

// As the kernel defines them (linux/mman.h since 6.5).
struct CachestatRange {
  uint64_t offset = 0;
  uint64_t length = 0;  // 0: to the end
};
struct Cachestat {
  uint64_t cached = 0;
  uint64_t dirty = 0;
  uint64_t writeback = 0;
  uint64_t evicted = 0;
  uint64_t recently_evicted = 0;
};

absl::Status NotTold() {
  return absl::PermissionDeniedError(
      "the kernel tells what of a file is in memory only to who owns it or may write it");
}

// CAP_FOWNER, which root may be without.
bool CountsAsOwner() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capget, &header, data) == 0 &&
         (data[CAP_TO_INDEX(CAP_FOWNER)].effective & CAP_TO_MASK(CAP_FOWNER)) != 0;
}

// As the kernel judges for mincore and cachestat; whom it does not trust mincore deceives.
bool MayKnow(int fd, const struct stat& info) {
  return info.st_uid == geteuid() || CountsAsOwner() ||
         faccessat(AT_FDCWD, absl::StrCat("/proc/self/fd/", fd).c_str(), W_OK, AT_EACCESS) == 0;
}

struct ListedFile {
  std::string path;
  size_t root = 0;
};

// What is known of a root while its files are looked at.
struct RootState {
  std::optional<dev_t> device;
  std::set<std::pair<dev_t, ino_t>> linked;  // files of several names that were counted
};

absl::StatusOr<std::vector<ListedFile>> ListFiles(const std::vector<std::string>& roots) {
  std::vector<ListedFile> files;
  for (size_t root = 0; root < roots.size(); ++root) {
    std::error_code error;
    std::filesystem::recursive_directory_iterator entry(roots[root], error);
    const std::filesystem::recursive_directory_iterator end;
    while (!error && entry != end) {
      std::error_code vanished;
      if (entry->is_regular_file(vanished)) files.push_back({entry->path().string(), root});
      entry.increment(error);
    }
    if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", roots[root]));
  }
  return files;
}

std::vector<RootState> StatesOf(const std::vector<std::string>& roots) {
  std::vector<RootState> states(roots.size());
  for (size_t root = 0; root < roots.size(); ++root) {
    struct stat info {};
    if (stat(roots[root].c_str(), &info) == 0) states[root].device = info.st_dev;
  }
  return states;
}

void AddSize(const struct stat& info, RootState* state, RootSize* size) {
  constexpr int64_t kBlockBytes = 512;  // whatever the file system's are
  ++size->seen_files;
  if (state->device != info.st_dev) ++size->elsewhere_count;
  if (info.st_nlink > 1 && !state->linked.emplace(info.st_dev, info.st_ino).second) return;
  size->seen_bytes += std::min<int64_t>(info.st_size, info.st_blocks * kBlockBytes);
}

// False if the file is not there any more.
absl::StatusOr<bool> Look(const ListedFile& listed, const ResidencyOptions& options,
                          RootState* state, Residency* residency) {
  const std::string& path = listed.path;
  const absl::StatusOr<UniqueFd> file = OpenRegularFile(path);
  if (absl::IsNotFound(file.status())) return false;
  struct stat info {};
  absl::StatusOr<PageCounts> pages = file.ok() ? options.count(file->get()) : file.status();
  if (file.ok() && fstat(file->get(), &info) != 0) {
    pages = absl::ErrnoToStatus(errno, absl::StrCat("cannot stat ", path));
  } else if (file.ok()) {
    AddSize(info, state, &residency->roots[listed.root]);
  }
  if (!pages.ok()) {
    if (residency->untold_files++ == 0) residency->untold = std::string(pages.status().message());
    return true;
  }
  ++residency->checked_files;
  residency->checked_bytes += info.st_size;
  residency->pages.resident += pages->resident;
  residency->pages.unwritten += pages->unwritten;
  if (pages->resident > 0 && residency->resident.size() < kResidentFilesMax)
    residency->resident.push_back({path, pages->resident, info.st_dev, info.st_ino});
  return true;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListFilesBelow(const std::vector<std::string>& roots) {
  ASSIGN_OR_RETURN(std::vector<ListedFile> listed, ListFiles(roots));
  std::vector<std::string> files;
  for (ListedFile& file : listed)
    files.push_back(std::move(file.path));
  return files;
}

absl::StatusOr<PageCounts> CountPagesByMincore(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, "fstat");
  if (!MayKnow(fd, info)) return NotTold();
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  PageCounts counts;
  for (int64_t offset = 0; offset < info.st_size; offset += kMincoreBytes) {
    const auto length = static_cast<size_t>(std::min(kMincoreBytes, info.st_size - offset));
    void* const map = mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, offset);
    if (map == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
    std::vector<unsigned char> pages((length + static_cast<size_t>(page_bytes) - 1) /
                                     static_cast<size_t>(page_bytes));
    const int result = mincore(map, length, pages.data());
    const int error = errno;
    munmap(map, length);
    if (result != 0) return absl::ErrnoToStatus(error, "mincore");
    counts.resident += std::count_if(pages.begin(), pages.end(),
                                     [](unsigned char flags) { return (flags & 1) != 0; });
  }
  return counts;
}

namespace {

// A filter of calls that is older than the call does not know it: systemd 252 of Debian 12 has no
// name for it that a unit could allow. The kernel itself would look at the descriptor first.
bool IsCachestatForbidden() {
  const CachestatRange range;
  Cachestat found;
  return syscall(kCachestatCall, -1, &range, &found, 0) != 0 && errno == EPERM;
}

}  // namespace

absl::StatusOr<PageCounts> CountPages(int fd) {
  const CachestatRange range;
  Cachestat found;
  if (syscall(kCachestatCall, fd, &range, &found, 0) == 0)
    return PageCounts{static_cast<int64_t>(found.cached),
                      static_cast<int64_t>(found.dirty + found.writeback)};
  if (errno == ENOSYS) return CountPagesByMincore(fd);
  if (errno == EPERM) return IsCachestatForbidden() ? CountPagesByMincore(fd) : NotTold();
  return absl::ErrnoToStatus(errno, "cachestat");
}

int64_t RootSize::EstimatedBytes() const {
  if (seen_files == 0) return 0;
  return static_cast<int64_t>(static_cast<double>(seen_bytes) / static_cast<double>(seen_files) *
                              static_cast<double>(file_count));
}

int64_t Residency::EstimatedBytes() const {
  if (checked_files == 0) return 0;
  return static_cast<int64_t>(static_cast<double>(checked_bytes) /
                              static_cast<double>(checked_files) * static_cast<double>(file_count));
}

absl::StatusOr<Residency> MeasureResidency(const std::vector<std::string>& roots,
                                           const ResidencyOptions& options, const Clock& clock) {
  ASSIGN_OR_RETURN(std::vector<ListedFile> files, ListFiles(roots));
  std::vector<RootState> states = StatesOf(roots);
  Residency residency{.seed = options.seed, .file_count = static_cast<int64_t>(files.size())};
  residency.roots.resize(roots.size());
  for (const ListedFile& file : files)
    ++residency.roots[file.root].file_count;
  std::mt19937_64 random(options.seed);
  const size_t goal = residency.file_count <= options.all_max
                          ? files.size()
                          : static_cast<size_t>(options.sample_count);
  const MonoTime deadline = clock.Mono() + options.budget;
  for (size_t i = 0; i < goal && clock.Mono() < deadline; ++i) {
    std::swap(files[i], files[i + random() % (files.size() - i)]);
    ASSIGN_OR_RETURN(const bool is_there,
                     Look(files[i], options, &states[files[i].root], &residency));
    if (is_there) continue;
    --residency.file_count;
    --residency.roots[files[i].root].file_count;
  }
  std::sort(residency.resident.begin(), residency.resident.end(),
            [](const ResidentFile& a, const ResidentFile& b) {
              return std::pair(-a.pages, a.path) < std::pair(-b.pages, b.path);
            });
  return residency;
}

std::string Confidence(const Residency& residency) {
  if (!residency.is_sample()) return "";
  constexpr double kShare = 0.001;
  return absl::StrFormat(
      "%d of %d files, drawn at random with seed %d: if 0.1 %% of the files were in memory, all "
      "of them would be missed with a probability of %.3g %%",
      residency.checked_files, residency.file_count, residency.seed,
      100 * std::pow(1 - kShare, static_cast<double>(residency.checked_files)));
}

}  // namespace assay::agent
