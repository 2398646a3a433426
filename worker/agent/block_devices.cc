#include "worker/agent/block_devices.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "common/file.h"

namespace assay::agent {
namespace {

// What is mounted where the file lies, such as "/dev/sda2", if that is btrfs; else empty.
std::string BtrfsSourceOf(int fd) {
  struct statx info {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &info) != 0 || (info.stx_mask & STATX_MNT_ID) == 0)
    return "";
  const std::string mounts = ReadFile("/proc/self/mountinfo").value_or("");
  for (const absl::string_view line : absl::StrSplit(mounts, '\n', absl::SkipEmpty())) {
    // "36 35 0:40 / /mnt rw shared:1 - btrfs /dev/sda2 rw"
    const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::vector<absl::string_view> about = absl::StrSplit(halves.back(), ' ');
    uint64_t id = 0;
    if (halves.size() == 2 && about.size() >= 2 && about[0] == "btrfs" &&
        absl::SimpleAtoi(halves[0].substr(0, halves[0].find(' ')), &id) && id == info.stx_mnt_id)
      return std::string(about[1]);
  }
  return "";
}

// Of a folder of sysfs that is a block device.
std::optional<dev_t> NumberIn(const std::filesystem::path& folder) {
  const std::string text = ReadFile((folder / "dev").string()).value_or("");
  const std::vector<absl::string_view> numbers =
      absl::StrSplit(absl::StripAsciiWhitespace(text), ':');
  unsigned number_major = 0;
  unsigned number_minor = 0;
  if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &number_major) ||
      !absl::SimpleAtoi(numbers[1], &number_minor))
    return std::nullopt;
  return makedev(number_major, number_minor);
}

// All devices of the btrfs of which `source` is one.
std::vector<dev_t> DevicesOfBtrfs(const std::string& source) {
  struct stat info {};
  if (source.empty() || stat(source.c_str(), &info) != 0 || !S_ISBLK(info.st_mode)) return {};
  std::error_code error;
  for (const std::filesystem::directory_entry& one :
       std::filesystem::directory_iterator("/sys/fs/btrfs", error)) {
    std::vector<dev_t> devices;
    bool is_this = false;
    std::error_code none;  // "features" has no devices
    for (const std::filesystem::directory_entry& link :
         std::filesystem::directory_iterator(one.path() / "devices", none)) {
      const std::optional<dev_t> number = NumberIn(link.path());
      if (!number.has_value()) return {};
      devices.push_back(*number);
      is_this = is_this || *number == info.st_rdev;
    }
    if (is_this) return devices;
  }
  return {};
}

}  // namespace

std::vector<dev_t> BlockDevicesOf(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return {};
  if (major(info.st_dev) != 0) return {info.st_dev};
  return DevicesOfBtrfs(BtrfsSourceOf(fd));
}

}  // namespace assay::agent
