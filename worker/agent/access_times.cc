#include "worker/agent/access_times.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "absl/time/time.h"

#include "common/status.h"
#include "worker/agent/residency.h"

namespace assay::agent {
namespace {

constexpr int64_t kAllowedUs = 20'000;
constexpr int64_t kDayUs = int64_t{24} * 3600 * 1'000'000;

int64_t ToUs(const timespec& time) {
  return absl::ToUnixMicros(absl::TimeFromTimespec(time));
}

std::optional<struct stat> StatOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

// As the kernel decides it (touch_atime): ST_RELATIME is the default, ST_NOATIME keeps none.
bool IsNextReadNoted(const std::string& path, const struct stat& info, int64_t now_us) {
  struct statvfs mount {};
  if (statvfs(path.c_str(), &mount) != 0 || (mount.f_flag & (ST_NOATIME | ST_RDONLY)) != 0)
    return false;
  if ((mount.f_flag & ST_RELATIME) == 0) return true;
  const int64_t accessed_us = ToUs(info.st_atim);
  return accessed_us <= std::max(ToUs(info.st_mtim), ToUs(info.st_ctim)) ||
         accessed_us <= now_us - kDayUs;
}

}  // namespace

absl::StatusOr<AccessTimes> AccessTimes::Take(const std::vector<std::string>& roots, uint64_t seed,
                                              const Clock& clock) {
  const MonoTime deadline = clock.Mono() + kBudget;
  ASSIGN_OR_RETURN(std::vector<std::string> paths, ListFilesBelow(roots));
  std::mt19937_64 random(seed);
  std::shuffle(paths.begin(), paths.end(), random);
  if (paths.size() > kFilesMax) paths.resize(kFilesMax);
  AccessTimes times;
  times.taken_us_ = absl::ToUnixMicros(clock.Wall());
  for (std::string& path : paths) {
    if (clock.Mono() >= deadline) break;
    const std::optional<struct stat> info = StatOf(path);
    if (info.has_value() && IsNextReadNoted(path, *info, times.taken_us_))
      times.files_.push_back({std::move(path), ToUs(info->st_atim)});
  }
  return times;
}

AccessTimes::Count AccessTimes::ReadBefore(absl::string_view path, int64_t heard_us,
                                           const Clock& clock) const {
  const MonoTime deadline = clock.Mono() + kReadBudget;
  int64_t touched_us = heard_us;
  const std::optional<struct stat> touched = StatOf(std::string(path));
  if (touched.has_value() && ToUs(touched->st_atim) >= taken_us_)
    touched_us = std::min(touched_us, ToUs(touched->st_atim));
  Count count;
  for (const File& file : files_) {
    if (clock.Mono() >= deadline) break;
    ++count.looked_at;
    if (file.path == path) continue;
    const std::optional<struct stat> now = StatOf(file.path);
    if (now.has_value() && ToUs(now->st_atim) != file.accessed_us &&
        ToUs(now->st_atim) < touched_us - kAllowedUs)
      ++count.read;
  }
  return count;
}

}  // namespace assay::agent
